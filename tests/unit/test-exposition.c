/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of generated statistics, read by a parser that knows the format and nothing of the
 * program: each series once, in its family, with the value that a table of paths names. promtool
 * judges one of them, too, where it is at hand.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>

#include "src/metrics/exposition.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "tests/unit/test.h"

enum { N_ROUNDS = 200, MAX_SERIES = 4096, MAX_FAMILIES = 256 };

static const char *const names[] = {"plain", "with \"quotes\"", "back\\slash", "two\nlines",
				    "{a=\"b\"} 1"};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

static struct statistics s;
static uint64_t seed = 5;

static uint64_t chance(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 20) % below;
}

/* Every count has a value of its own, so that one in the place of another shows. */
static void generate(void)
{
	uint64_t *counts = (uint64_t *)(void *)&s.counts;

	memset(&s, 0, sizeof(s));
	for (size_t i = 0; i < sizeof(s.counts) / sizeof(*counts); i++)
		counts[i] = i * 1000000 + chance(1000000);
	s.n_destinations = (uint32_t)chance(N_NAMES + 1);
	s.n_events = 1 + (uint32_t)chance(N_NAMES);
	for (uint32_t i = 0; i < s.n_events; i++)
		(void)snprintf(s.events[i], sizeof(s.events[i]), "%s", names[i]);
	for (uint32_t i = 0; i < s.n_destinations; i++) {
		uint64_t *d = (uint64_t *)(void *)&s.destinations[i];

		for (size_t k = 0; k < sizeof(s.destinations[i]) / sizeof(*d); k++)
			d[k] = 7000000 + i * 1000 + k;
	}
	s.n_processes = 1 + (uint32_t)chance(STATISTICS_MAX_PROCESSES);
	for (uint32_t i = 0; i < s.n_processes; i++) {
		(void)snprintf(s.processes[i].name, sizeof(s.processes[i].name), "role/%u", i);
		s.processes[i].kind = (uint8_t)chance(PEER_N);
		s.processes[i].wanted = chance(2) == 0;
		s.processes[i].pid = (uint32_t)chance(2);
		s.processes[i].rss_bytes = 8000000 + i;
		s.processes[i].starts = 1 + i;
	}
	s.drained_before_ns = chance(2) ? UINT64_MAX : chance(5000000000);
	s.n_cpus = 64;
	s.paused = chance(2);
	s.reduced = (uint32_t)chance(1 << 13);
	s.store_files = 11;
}

/* ---- The format ---- */

static struct series {
	char *text; /* name{labels} */
	double value;
} series[MAX_SERIES];
static uint32_t n_series;
static char *families[MAX_FAMILIES];
static uint32_t n_families;

static void forget(void)
{
	while (n_series > 0)
		free(series[--n_series].text);
	while (n_families > 0)
		free(families[--n_families]);
}

static const char *skip_name(const char *c)
{
	CHECK(isalpha((unsigned char)*c) || *c == '_');
	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return c;
}

/* {name="text",...}: in a text a backslash, a quote and a newline are escaped. */
static const char *skip_labels(const char *c)
{
	do {
		c = skip_name(c + 1);
		CHECK(c[0] == '=' && c[1] == '"');
		for (c += 2; *c != '"'; c++) {
			CHECK(*c != '\0');
			if (*c == '\\')
				CHECK(*++c == '\\' || *c == '"' || *c == 'n');
		}
		c++;
	} while (*c == ',');
	CHECK(*c == '}');
	return c + 1;
}

static void add_sample(const char *line, const char *type)
{
	const char *end = skip_name(line), *suffix = line + strlen(families[n_families - 1]);
	char *rest;

	CHECK(strncmp(line, families[n_families - 1], strlen(families[n_families - 1])) == 0);
	if (strcmp(type, "histogram") == 0)
		CHECK(strncmp(suffix, "_bucket", 7) == 0 || strncmp(suffix, "_sum", 4) == 0 ||
		      strncmp(suffix, "_count", 6) == 0);
	else
		CHECK(suffix == end);
	end = *end == '{' ? skip_labels(end) : end;
	CHECK(*end == ' ' && n_series < MAX_SERIES);
	series[n_series] = (struct series){strndup(line, (size_t)(end - line)), 0};
	series[n_series].value = strtod(end + 1, &rest);
	CHECK(rest > end + 1 && *rest == '\0');
	for (uint32_t i = 0; i < n_series; i++)
		CHECK(strcmp(series[i].text, series[n_series].text) != 0);
	n_series++;
}

static void add_family(const char *line)
{
	const char *end = skip_name(line);

	CHECK(*end == ' ' && strlen(end) > 5 && n_families < MAX_FAMILIES);
	families[n_families] = strndup(line, (size_t)(end - line));
	for (uint32_t i = 0; i < n_families; i++)
		CHECK(strcmp(families[i], families[n_families]) != 0);
	n_families++;
}

/* A counter ends with _total, and nothing else does. */
static const char *type_of(const char *line)
{
	const char *family = families[n_families - 1];
	size_t n = strlen(family);
	bool total = n > 6 && strcmp(family + n - 6, "_total") == 0;

	CHECK(strncmp(line, family, n) == 0 && line[n] == ' ');
	CHECK_INT(strcmp(line + n + 1, "counter") == 0, ==, total);
	return line + n + 1;
}

static void parse(char *text)
{
	const char *type = "";
	char *save, *line = strtok_r(text, "\n", &save);

	forget();
	for (; line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "# HELP ", 7) == 0) {
			add_family(line + 7);
			line = strtok_r(NULL, "\n", &save);
			CHECK(line && strncmp(line, "# TYPE ", 7) == 0);
			type = type_of(line + 7);
		} else {
			CHECK(n_families > 0);
			add_sample(line, type);
		}
	}
}

/* free() it. */
static char *print(void)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK(f != NULL);
	exposition_print(&s, names, f);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(n > 0 && text[n - 1] == '\n' && strstr(text, "\n\n") == NULL);
	return text;
}

static const struct series *find(const char *name)
{
	for (uint32_t i = 0; i < n_series; i++)
		if (strcmp(series[i].text, name) == 0)
			return &series[i];
	return NULL;
}

static void check_value(const char *name, uint64_t value)
{
	const struct series *found = find(name);

	if (!found)
		(void)fprintf(stderr, "there is no %s\n", name);
	CHECK(found != NULL);
	if ((uint64_t)found->value != value)
		(void)fprintf(stderr, "%s:\n", name);
	CHECK_INT(found->value, ==, value);
}

/* ---- The model ---- */

#define OF(field)  offsetof(struct statistics, field)
#define COUNTER(c) (OF(counts.counters) + (c) * sizeof(uint64_t))

static const struct {
	const char *series;
	size_t offset;
} plain[] = {
	{"samples_total", OF(counts.samples)},
	{"samples_filtered_total", OF(counts.filtered)},
	{"samples_lost_total{reason=\"ring_full\"}", COUNTER(PROFILE_SAMPLES_LOST)},
	{"samples_lost_total{reason=\"memory\"}", COUNTER(PROFILE_SAMPLES_DROPPED)},
	{"samples_lost_total{reason=\"process_died\"}", COUNTER(PROFILE_SAMPLES_DIED)},
	{"throttles_total", COUNTER(PROFILE_SAMPLES_THROTTLED)},
	{"records_bad_total", COUNTER(PROFILE_RECORDS_BAD)},
	{"sideband_lost_total", COUNTER(PROFILE_SIDEBAND_LOST)},
	{"switches_lost_total", COUNTER(PROFILE_SWITCHES_LOST)},
	{"switches_refused_total", COUNTER(PROFILE_SWITCHES_REFUSED)},
	{"user_stacks_total", COUNTER(PROFILE_USER_STACKS)},
	{"stacks_truncated_total", COUNTER(PROFILE_STACKS_TRUNCATED)},
	{"unwind_errors_total{cause=\"left\"}", COUNTER(PROFILE_STACKS_LEFT)},
	{"unwind_errors_total{cause=\"no_cfi\"}", COUNTER(PROFILE_STACKS_NO_CFI)},
	{"unwind_errors_total{cause=\"unproven\"}", COUNTER(PROFILE_STACKS_UNPROVEN)},
	{"unwind_errors_total{cause=\"32_bit\"}", COUNTER(PROFILE_STACKS_32_BIT)},
	{"unwind_errors_total{cause=\"no_regs\"}", COUNTER(PROFILE_STACKS_NO_REGS)},
	{"stacks_continued_total", COUNTER(PROFILE_STACKS_CONTINUED)},
	{"stacks_runtime_late_total", COUNTER(PROFILE_STACKS_RUNTIME_LATE)},
	{"stacks_runtime_unread_total", COUNTER(PROFILE_STACKS_RUNTIME_UNREAD)},
	{"frames_unnamed_total", COUNTER(PROFILE_FRAMES_UNNAMED)},
	{"frames_put_off_total", COUNTER(PROFILE_FRAMES_PUT_OFF)},
	{"interpreter_stacks_total", OF(counts.reader.reads)},
	{"interpreter_stacks_late_total", OF(counts.reader.late)},
	{"interpreter_stacks_unproven_total", OF(counts.reader.unproven)},
	{"spans_linked_total", COUNTER(PROFILE_SPANS_LINKED)},
	{"spans_outside_total", COUNTER(PROFILE_SPANS_OUTSIDE)},
	{"spans_unproven_total{cause=\"unread\"}", COUNTER(PROFILE_SPANS_UNREAD)},
	{"spans_unproven_total{cause=\"late\"}", COUNTER(PROFILE_SPANS_LATE)},
	{"spans_unproven_total{cause=\"moved\"}", COUNTER(PROFILE_SPANS_MOVED)},
	{"spans_unproven_total{cause=\"half_written\"}", COUNTER(PROFILE_SPANS_HALF)},
	{"spans_unproven_total{cause=\"unreadable\"}", COUNTER(PROFILE_SPANS_UNREADABLE)},
	{"reads_passed_over_total", OF(counts.reader.passed_over)},
	{"labels_refused_total", OF(counts.said.labels_refused)},
	{"attributes_refused_total", OF(counts.said.texts_refused)},
	{"windows_total", OF(counts.windows)},
	{"windows_named_total", OF(counts.windows_named)},
	{"payloads_total", OF(counts.payloads)},
	{"payload_bytes_total", OF(counts.payload_bytes)},
	{"store_files", OF(store_files)},
	{"store_bytes", OF(store_bytes)},
	{"store_samples_lost_total", OF(counts.store_samples_lost)},
};

static const struct {
	const char *family;
	size_t offset; /* in the first one's; of counts or of what is now */
	size_t step;
} of_destinations[] = {
#define COUNT(field) OF(counts.exports[0].field), sizeof(struct status_export)
#define NOW(field)   OF(destinations[0].field), sizeof(struct status_destination)
	{"payloads_sent_total", COUNT(sent)},
	{"samples_sent_total", COUNT(samples_sent)},
	{"sent_bytes_total", COUNT(bytes_sent)},
	{"samples_dropped_total", COUNT(samples_dropped)},
	{"profiles_rejected_total", COUNT(profiles_rejected)},
	{"failures_total", COUNT(failures)},
	{"retries_total", COUNT(retries)},
	{"payloads_spooled_total", COUNT(spooled)},
	{"payloads_split_total", COUNT(split)},
	{"queue_payloads", NOW(queue_payloads)},
	{"queue_bytes", NOW(queue_bytes)},
	{"spool_files", NOW(spool_payloads)},
	{"spool_bytes", NOW(spool_bytes)},
	{"down", NOW(down)},
};

static const char *escaped(uint32_t i)
{
	static const char *const texts[N_NAMES] = {"plain", "with \\\"quotes\\\"", "back\\\\slash",
						   "two\\nlines", "{a=\\\"b\\\"} 1"};

	return texts[i];
}

static uint64_t at(size_t offset)
{
	uint64_t v;

	memcpy(&v, (const char *)&s + offset, sizeof(v));
	return v;
}

static void check_latency(uint32_t d)
{
	const struct status_export *x = &s.counts.exports[d];
	char name[512];
	uint64_t n = 0;

	for (int i = 0; i < STATUS_LATENCY_BUCKETS; i++) {
		char bound[32] = "+Inf";

		n += x->latency[i];
		if (i < STATUS_LATENCY_BUCKETS - 1)
			(void)snprintf(bound, sizeof(bound), "%g",
				       (double)status_latency_bounds_ns[i] / 1e9);
		(void)snprintf(name, sizeof(name),
			       "perfwalk_export_request_duration_seconds_bucket{destination=\"%s\","
			       "le=\"%s\"}",
			       escaped(d), bound);
		check_value(name, n);
	}
	(void)snprintf(name, sizeof(name),
		       "perfwalk_export_request_duration_seconds_count{destination=\"%s\"}",
		       escaped(d));
	check_value(name, n);
}

static void check_destination(uint32_t d)
{
	char name[512];

	for (size_t i = 0; i < sizeof(of_destinations) / sizeof(of_destinations[0]); i++) {
		(void)snprintf(name, sizeof(name), "perfwalk_export_%s{destination=\"%s\"}",
			       of_destinations[i].family, escaped(d));
		check_value(name, at(of_destinations[i].offset + d * of_destinations[i].step));
	}
	for (int why = 0; why < STATUS_N_DROPS; why++) {
		(void)snprintf(name, sizeof(name),
			       "perfwalk_export_payloads_dropped_total{destination=\"%s\",reason="
			       "\"%s\"}",
			       escaped(d), status_drop_name((enum status_drop)why));
		check_value(name, s.counts.exports[d].dropped[why]);
	}
	check_latency(d);
}

static void check_event(uint32_t e)
{
	char name[512];

	(void)snprintf(name, sizeof(name), "perfwalk_event_samples_total{event=\"%s\"}",
		       escaped(e));
	check_value(name, s.counts.events[e].samples);
	(void)snprintf(name, sizeof(name), "perfwalk_event_samples_lost_total{event=\"%s\"}",
		       escaped(e));
	check_value(name, s.counts.events[e].lost);
	(void)snprintf(name, sizeof(name), "perfwalk_event_throttles_total{event=\"%s\"}",
		       escaped(e));
	check_value(name, s.counts.events[e].throttled);
	(void)snprintf(name, sizeof(name), "perfwalk_event_stood_still_seconds_total{event=\"%s\"}",
		       escaped(e));
	check_value(name, s.counts.events[e].stood_still_ms / 1000);
}

static void check_blocked_spans(void)
{
	static const struct {
		const char *series;
		enum profile_counter counter;
	} parts[] = {{"linked", PROFILE_SPANS_BLOCKED_LINKED_US},
		     {"outside", PROFILE_SPANS_BLOCKED_OUTSIDE_US},
		     {"unproven", PROFILE_SPANS_BLOCKED_UNPROVEN_US}};
	char name[256];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)snprintf(name, sizeof(name),
			       "perfwalk_spans_blocked_seconds_total{span=\"%s\"}",
			       parts[i].series);
		check_value(name, s.counts.counters[parts[i].counter] / 1000000);
	}
}

/* A process that does not run has no memory, one that need not run no starts. */
static void check_process(uint32_t i)
{
	const struct statistics_process *p = &s.processes[i];
	char name[128];

	(void)snprintf(name, sizeof(name), "perfwalk_process_resident_memory_bytes{role=\"%s\"}",
		       p->name);
	CHECK_INT(find(name) != NULL, ==, p->pid != 0);
	if (p->pid)
		check_value(name, p->rss_bytes);
	(void)snprintf(name, sizeof(name), "perfwalk_process_starts_total{role=\"%s\"}", p->name);
	CHECK_INT(find(name) != NULL, ==, p->wanted);
	if (p->wanted)
		check_value(name, p->starts);
}

static void check_reduced(void)
{
	check_value("perfwalk_reduced{what=\"lines\"}", s.reduced >> REDUCED_LINES & 1);
	check_value("perfwalk_reduced{what=\"stacks\"}", s.reduced >> REDUCED_STACKS & 1);
	check_value("perfwalk_reduced{what=\"rate\"}", (s.reduced & REDUCED_RATE_BITS) != 0);
	check_value("perfwalk_reduced{what=\"switches\"}",
		    (s.reduced & REDUCED_SWITCHES_BITS) != 0);
	check_value("perfwalk_paused", s.paused);
	CHECK_INT(find("perfwalk_last_drain_timestamp_seconds")->value == 0, ==,
		  s.drained_before_ns == UINT64_MAX);
}

static void test_generated(void)
{
	for (int round = 0; round < N_ROUNDS; round++) {
		char name[128], *text;

		generate();
		text = print();
		parse(text);
		for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
			(void)snprintf(name, sizeof(name), "perfwalk_%s", plain[i].series);
			check_value(name, at(plain[i].offset));
		}
		for (uint32_t i = 0; i < s.n_destinations; i++)
			check_destination(i);
		for (uint32_t i = 0; i < s.n_events; i++)
			check_event(i);
		for (uint32_t i = 0; i < s.n_processes; i++)
			check_process(i);
		check_blocked_spans();
		check_reduced();
		CHECK_INT(find("perfwalk_debuginfod_fetched_total") != NULL, ==,
			  statistics_has(&s, PEER_FETCHER));
		free(text);
	}
}

/* What a tool of Prometheus's own says of it. */
static void test_promtool(void)
{
	const char *top = getenv("srcdir");
	char command[1024], *text;
	FILE *f;
	int status;

	(void)snprintf(command, sizeof(command),
		       "promtool=$(sh %s/tests/system/fetch-promtool.sh 2>/dev/null) || exit 77; "
		       "exec \"$promtool\" check metrics",
		       top ? top : ".");
	do
		generate();
	while (s.n_destinations == 0);
	text = print();
	f = popen(command, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	free(text);
	status = pclose(f);
	if (status == 77 << 8)
		(void)fprintf(stderr, "promtool is not at hand\n");
	else
		CHECK_INT(status, ==, 0);
}

int main(void)
{
	RUN(test_generated);
	RUN(test_promtool);
	forget();
	return 0;
}
