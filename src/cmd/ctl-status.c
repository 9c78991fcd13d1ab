/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon says everything in lines "NAME VALUE" (status.c): what of it a person wants. */
#include "config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/ctl-status.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/text.h"

#define MAX_LINES 2048

struct lines {
	struct status_line {
		const char *name, *value;
	} items[MAX_LINES];
	size_t n;
};

static struct lines *split(char *text)
{
	struct lines *l = calloc(1, sizeof(*l));
	char *state = NULL;

	for (char *line = strtok_r(text, "\n", &state); l && line && l->n < MAX_LINES;
	     line = strtok_r(NULL, "\n", &state)) {
		char *blank = strchr(line, ' ');

		if (!blank)
			continue;
		*blank = '\0';
		l->items[l->n++] = (struct status_line){line, blank + 1};
	}
	return l;
}

/* "": there is none, as of a daemon of another version. */
static const char *get(const struct lines *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->items[i].name, name) == 0)
			return l->items[i].value;
	}
	return "";
}

static unsigned long long number(const struct lines *l, const char *name)
{
	return strtoull(get(l, name), NULL, 10);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* ---- For a person ---- */

static const char *seconds(char *buf, size_t size, unsigned long long n)
{
	return text_format_duration(buf, size, n * NSEC_PER_SEC);
}

/* An upgrade does not always restart the daemon, and nothing else shows which program runs. */
static void print_program(const struct lines *l, FILE *out)
{
	const char *version = get(l, "version");

	if (*version && strcmp(version, PACKAGE_VERSION) != 0)
		(void)fprintf(out,
			      "          of version %s, and this is " PACKAGE_VERSION
			      ": systemctl restart perfwalk\n",
			      version);
	else if (strcmp(get(l, "program_replaced"), "yes") == 0)
		(void)fprintf(out, "          its program was replaced since: systemctl restart "
				   "perfwalk\n");
}

static void print_state(const struct lines *l, time_t now, FILE *out)
{
	static const char *const roles[] = {"profiler", "symbolizer", "exporter"};
	time_t start = now - (time_t)number(l, "uptime_seconds");
	char since[32] = "", name[32], for_how_long[32];
	struct tm tm;

	if (localtime_r(&start, &tm))
		(void)strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	(void)fprintf(out, "State     %s since %s (%s)\n",
		      strcmp(get(l, "paused"), "yes") == 0
			      ? "paused: perfwalk ctl resume continues; running"
			      : "sampling,",
		      since,
		      seconds(for_how_long, sizeof(for_how_long), number(l, "uptime_seconds")));
	print_program(l, out);
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		(void)snprintf(name, sizeof(name), "%s.pid", roles[i]);
		if (!*get(l, name))
			(void)fprintf(out, "          the %s is not running, see the log\n",
				      roles[i]);
	}
	(void)fprintf(
		out, "Sampling  %s at %s Hz on %s CPUs, a profile every %s\n", get(l, "event"),
		get(l, "rate_hz"), get(l, "cpus"),
		text_format_duration(name, sizeof(name),
				     (uint64_t)(strtod(get(l, "interval_seconds"), NULL) * 1e9)));
	(void)fprintf(out, "Config    %s\n", get(l, "config"));
}

/* Goes on in a line about losses, if there are some. */
static void print_lost(const struct lines *l, const char *name, const char *what, FILE *out)
{
	unsigned long long n = number(l, name);

	if (n)
		(void)fprintf(out, ", %llu %s", n, what);
}

static void print_samples(const struct lines *l, FILE *out)
{
	unsigned long long filtered = number(l, "samples_filtered");

	(void)fprintf(out, "Samples   %llu taken", number(l, "samples") - filtered);
	if (filtered)
		(void)fprintf(out, ", %llu more excluded by [filter]", filtered);
	(void)fprintf(out, "\nLosses    %llu lost in the kernel, %llu dropped",
		      number(l, "samples_lost"), number(l, "samples_dropped"));
	print_lost(l, "samples_lost_with_process", "lost with a process that died", out);
	print_lost(l, "switches_lost", "context switches lost", out);
	print_lost(l, "sideband_lost", "records of processes lost", out);
	(void)fputc('\n', out);
	if (number(l, "files_set_aside"))
		(void)fprintf(out, "          %llu files set aside, see the log\n",
			      number(l, "files_set_aside"));
	if (number(l, "files_refused"))
		(void)fprintf(
			out,
			"Refused   %llu requests for files on filesystems that do not answer\n",
			number(l, "files_refused"));
}

static unsigned long long of_prefix(const struct lines *l, const char *prefix, const char *what)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s%s", prefix, what);
	return number(l, name);
}

static bool is_event(const struct status_line *line)
{
	return strncmp(line->name, "event.", strlen("event.")) == 0 &&
	       ends_with(line->name, ".samples");
}

/* Of several events each. */
static void print_events(const struct lines *l, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += is_event(&l->items[i]);
	for (size_t i = 0; i < l->n && n > 1; i++) {
		const char *name = l->items[i].name;
		char prefix[128];

		if (!is_event(&l->items[i]))
			continue;
		(void)snprintf(prefix, sizeof(prefix), "%.*s",
			       (int)(strlen(name) - strlen("samples")), name);
		(void)fprintf(out, "          %.*s: %llu taken, %llu lost\n",
			      (int)(strlen(prefix) - strlen("event.") - 1),
			      prefix + strlen("event."), of_prefix(l, prefix, "samples"),
			      of_prefix(l, prefix, "samples_lost"));
	}
}

static void print_destination(const struct lines *l, const struct status_line *state, FILE *out)
{
	unsigned long long waiting, on_disk, dropped;
	char prefix[128], bytes[32], time[32];

	(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)(strlen(state->name) - strlen("state")),
		       state->name);
	waiting = of_prefix(l, prefix, "queue_payloads");
	on_disk = of_prefix(l, prefix, "spool_payloads");
	dropped = of_prefix(l, prefix, "payloads_dropped");
	(void)fprintf(out, "Export    %.*s: ", (int)(strlen(prefix) - strlen("export.") - 1),
		      prefix + strlen("export."));
	if (strcmp(state->value, "untried") == 0)
		(void)fputs("nothing sent yet", out);
	else
		(void)fprintf(out, "%s for %s, %llu sent", state->value,
			      seconds(time, sizeof(time), of_prefix(l, prefix, "state_seconds")),
			      of_prefix(l, prefix, "payloads_sent"));
	if (waiting)
		(void)fprintf(out, ", %llu wait", waiting);
	if (on_disk)
		(void)fprintf(out, ", %llu of them on disk (%s)", on_disk,
			      text_format_bytes(bytes, sizeof(bytes),
						of_prefix(l, prefix, "spool_bytes")));
	if (dropped)
		(void)fprintf(out, ", %llu dropped", dropped);
	(void)fputc('\n', out);
}

static void print_refused(const struct lines *l, const char *name, const char *why, FILE *out)
{
	if (number(l, name))
		(void)fprintf(out, "          %llu %s\n", number(l, name), why);
}

/* Samples of programs that tell their spans. */
static void print_spans(const struct lines *l, FILE *out)
{
	static const struct {
		const char *name, *what;
	} causes[] = {
		{"spans_unread", "not read"},
		{"spans_late", "not in time"},
		{"spans_moved", "the thread may have moved on"},
		{"spans_half_written", "half-written"},
		{"spans_unreadable", "not readable"},
	};
	unsigned long long linked = number(l, "spans_linked"), outside = number(l, "spans_outside");
	unsigned long long unproven = 0;
	bool first = true;

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		unproven += number(l, causes[i].name);
	if (!(linked + outside + unproven))
		return;
	(void)fprintf(out, "Spans     %llu samples in spans, %llu in none, %llu not proven", linked,
		      outside, unproven);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		if (!number(l, causes[i].name))
			continue;
		(void)fprintf(out, "%s%llu %s", first ? " (" : ", ", number(l, causes[i].name),
			      causes[i].what);
		first = false;
	}
	(void)fputs(unproven ? ")\n" : "\n", out);
}

/* Of programs with interpreters, and of those that tell their spans. */
static void print_readers(const struct lines *l, FILE *out)
{
	unsigned long long n = number(l, "interpreter_stacks");

	if (n + number(l, "interpreters") > 0)
		(void)fprintf(out,
			      "Readers   %llu processes known, %llu stacks read, %llu not in time, "
			      "%llu not proven\n",
			      number(l, "interpreters"),
			      n - number(l, "interpreter_stacks_late") -
				      number(l, "interpreter_stacks_unproven"),
			      number(l, "interpreter_stacks_late"),
			      number(l, "interpreter_stacks_unproven"));
	print_spans(l, out);
	print_refused(l, "labels_refused",
		      "samples lack labels: their keys are reserved or repeated, or they are too "
		      "many or too long",
		      out);
	print_refused(l, "attributes_refused",
		      "attributes of processes are left out: they are too long or too many", out);
	print_refused(l, "interpreters_not_allowed",
		      "processes may not be read: that needs root, or CAP_SYS_PTRACE", out);
	print_refused(l, "interpreters_kept_waiting",
		      "times a process was set aside: its memory kept a reader waiting", out);
	print_refused(l, "interpreters_too_many",
		      "processes are not read: there is no room for them, see the log", out);
}

static void print_store(const struct lines *l, FILE *out)
{
	unsigned long long lost = number(l, "store_samples_lost");
	char bytes[32];

	if (!number(l, "store_files") && !lost)
		return;
	(void)fprintf(out, "Store     %llu profiles on this host, %s", number(l, "store_files"),
		      text_format_bytes(bytes, sizeof(bytes), number(l, "store_bytes")));
	if (lost)
		(void)fprintf(out, "; %llu samples could not be kept", lost);
	(void)fputc('\n', out);
}

/* A line of the processes of which a line NAME.what says value, if there are any. */
static void print_processes(const struct lines *l, const char *what, const char *value,
			    const char *meaning, bool *begun, FILE *out)
{
	bool first = true;

	for (size_t i = 0; i < l->n; i++) {
		const char *name = l->items[i].name;

		if (!ends_with(name, what) || strcmp(l->items[i].value, value) != 0)
			continue;
		if (first)
			(void)fprintf(out, "%-9s %s: ", *begun ? "" : "Sandbox", meaning);
		(void)fprintf(out, "%s%.*s", first ? "" : ", ", (int)(strlen(name) - strlen(what)),
			      name);
		first = false;
	}
	if (first)
		return;
	(void)fputc('\n', out);
	*begun = true;
}

/* What the kernel enforces; one process may differ from the others until it is started again. */
static void print_sandbox(const struct lines *l, FILE *out)
{
	static const struct {
		const char *what, *value, *meaning;
	} lines[] = {
		{".seccomp", "errno", "system calls limited (seccomp errno)"},
		{".seccomp", "kill", "system calls limited (seccomp kill)"},
		{".seccomp", "trap", "system calls limited (seccomp trap)"},
		{".seccomp", "no", "system calls not limited"},
		{".landlock", "0", "files not limited (no Landlock)"},
		{".network", "none", "without the network"},
	};
	bool begun = false;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		print_processes(l, lines[i].what, lines[i].value, lines[i].meaning, &begun, out);
}

/* The memory that each may have. */
static void print_limits(const struct lines *l, FILE *out)
{
	static const char what[] = ".max_data_bytes";
	bool first = true;
	char bytes[32];

	for (size_t i = 0; i < l->n; i++) {
		const char *name = l->items[i].name;

		if (!ends_with(name, what))
			continue;
		(void)fprintf(out, "%s%.*s %s", first ? "          memory limited: " : ", ",
			      (int)(strlen(name) - strlen(what)), name,
			      text_format_bytes(bytes, sizeof(bytes),
						strtoull(l->items[i].value, NULL, 10)));
		first = false;
	}
	if (!first)
		(void)fputc('\n', out);
}

static void print_cost(const struct lines *l, FILE *out)
{
	unsigned long long uptime = number(l, "uptime_seconds"), rss = 0, n = 0;
	char bytes[32];
	double cpu = 0;

	for (size_t i = 0; i < l->n; i++) {
		n += ends_with(l->items[i].name, ".pid");
		if (ends_with(l->items[i].name, ".memory_bytes"))
			rss += strtoull(l->items[i].value, NULL, 10);
		if (ends_with(l->items[i].name, ".cpu_seconds"))
			cpu += strtod(l->items[i].value, NULL);
	}
	(void)fprintf(
		out,
		"Cost      %.2f s of CPU time (%.2f%% of one CPU), %s of memory, %llu processes\n",
		cpu, 100 * cpu / (double)(uptime ? uptime : 1),
		text_format_bytes(bytes, sizeof(bytes), rss), n);
	(void)fprintf(out, "          lately %.2f%% of all CPUs, limit %s%%\n",
		      strtod(get(l, "cpu_percent"), NULL), get(l, "cpu_limit_percent"));
	if (strcmp(get(l, "reduced"), "no") != 0)
		(void)fprintf(out, "          reduced to stay within it: %s\n", get(l, "reduced"));
}

void ctl_status_print(char *text, time_t now, FILE *out)
{
	_cleanup_free_ struct lines *l = split(text);

	if (!l)
		return;
	print_state(l, now, out);
	print_samples(l, out);
	print_events(l, out);
	for (size_t i = 0; i < l->n; i++) {
		if (strncmp(l->items[i].name, "export.", 7) == 0 &&
		    ends_with(l->items[i].name, ".state"))
			print_destination(l, &l->items[i], out);
	}
	print_readers(l, out);
	print_store(l, out);
	print_sandbox(l, out);
	print_limits(l, out);
	print_cost(l, out);
}

/* ---- For programs ---- */

static const char *skip_digits(const char *p)
{
	while (isdigit((unsigned char)*p))
		p++;
	return p;
}

/* As JSON has them: of a daemon of another version a value may be anything. */
static bool is_number(const char *p)
{
	const char *digits = p += *p == '-';

	p = skip_digits(p);
	if (p == digits || (*digits == '0' && p > digits + 1))
		return false;
	if (*p == '.') {
		digits = ++p;
		p = skip_digits(p);
		if (p == digits)
			return false;
	}
	if (*p == 'e' || *p == 'E') {
		p += p[1] == '+' || p[1] == '-' ? 2 : 1;
		digits = p;
		p = skip_digits(p);
		if (p == digits)
			return false;
	}
	return !*p;
}

static void put_value(const struct status_line *line, FILE *out)
{
	static const char *const texts[] = {"version", "config", "event", "reduced"};
	bool text = ends_with(line->name, ".state") || ends_with(line->name, ".seccomp") ||
		    ends_with(line->name, ".network") || ends_with(line->name, ".tasks");

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		text |= strcmp(line->name, texts[i]) == 0;
	if (strcmp(line->name, "paused") == 0 || strcmp(line->name, "program_replaced") == 0)
		(void)fputs(strcmp(line->value, "yes") == 0 ? "true" : "false", out);
	else if (text || !is_number(line->value))
		json_put_string(out, line->value);
	else
		(void)fputs(line->value, out);
}

void ctl_status_print_json(char *text, FILE *out)
{
	_cleanup_free_ struct lines *l = split(text);

	for (size_t i = 0; l && i < l->n; i++) {
		(void)fputs(i ? ",\n  " : "{\n  ", out);
		json_put_string(out, l->items[i].name);
		(void)fputs(": ", out);
		put_value(&l->items[i], out);
	}
	(void)fputs(l && l->n ? "\n}\n" : "{}\n", out);
}
