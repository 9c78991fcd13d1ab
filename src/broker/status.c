/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the tree as lines of a name and a value. */
#include <stdio.h>

#include "src/broker/internal.h"
#include "src/process/sandbox.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

static void print_count(FILE *out, const char *name, uint64_t n)
{
	(void)fprintf(out, "%s %llu\n", name, (unsigned long long)n);
}

static void print_process(FILE *out, const struct statistics_process *p)
{
	if (p->pid)
		(void)fprintf(out, "%s.pid %u\n%s.memory_bytes %llu\n%s.cpu_seconds %.2f\n",
			      p->name, p->pid, p->name, (unsigned long long)p->rss_bytes, p->name,
			      (double)p->cpu_ns / 1e9);
}

/* What a process says, or of the opener, which has no page, what the kernel says. false: it is not
 * there any more. */
static bool limits_of(const struct supervisor *s, const struct statistics_process *p,
		      struct privileges_limits *ret)
{
	struct peer_id who;

	if (p->kind == STATISTICS_OPENER)
		return privileges_read_limits((pid_t)p->pid, ret) == 0;
	for (uint32_t at = 0; supervisor_next(s, &at, &who);) {
		if (supervisor_pid(s, who) == (pid_t)p->pid) {
			*ret = supervisor_status(s, who)->limits;
			return true;
		}
	}
	return false;
}

/* Only those that it has: a number, or no line. */
static void print_limits(FILE *out, const struct supervisor *s, const struct statistics_process *p)
{
	struct privileges_limits l;
	const struct {
		const char *name;
		const uint64_t *n;
	} lines[] = {
		{"max_data_bytes", &l.data_bytes},
		{"max_address_space_bytes", &l.address_space_bytes},
		{"max_file_bytes", &l.file_bytes},
		{"max_open_files", &l.open_files},
	};

	if (!p->pid || !p->ready || !limits_of(s, p, &l))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (*lines[i].n != UINT64_MAX)
			(void)fprintf(out, "%s.%s %llu\n", p->name, lines[i].name,
				      (unsigned long long)*lines[i].n);
	}
	(void)fprintf(out, "%s.tasks %s\n", p->name, l.tasks == 0 ? "no" : "yes");
}

static void print_sandbox(FILE *out, const struct statistics_process *p)
{
	const struct status_sandbox *s = &p->sandbox;

	if (!p->pid || !p->ready)
		return;
	(void)fprintf(out, "%s.seccomp %s\n", p->name,
		      s->seccomp < SANDBOX_N_MODES
			      ? sandbox_mode_name((enum sandbox_mode)s->seccomp)
			      : "?");
	if (p->kind != STATISTICS_OPENER) /* which has nothing but its filter */
		(void)fprintf(out, "%s.landlock %u\n%s.network %s\n%s.uid %u\n", p->name,
			      s->landlock, p->name, s->no_network ? "none" : "host", p->name,
			      s->uid);
}

static void print_debuginfod(const struct status_debuginfod *d, FILE *out)
{
	print_count(out, "debuginfod.fetched", d->fetched);
	print_count(out, "debuginfod.bytes", d->bytes);
	print_count(out, "debuginfod.missing", d->missing);
	print_count(out, "debuginfod.failures", d->failures);
	print_count(out, "debuginfod.refused", d->refused);
	print_count(out, "debuginfod.evicted", d->evicted);
}

/* Of a child that has died nothing is known: as if nothing was tried. */
static void print_state(const struct status_destination *d, const char *name, FILE *out)
{
	uint64_t now = clock_monotonic_ns();

	(void)fprintf(out, "export.%s.state %s\nexport.%s.state_seconds %llu\n", name,
		      d->down	    ? "down"
		      : d->since_ns ? "up"
				    : "untried",
		      name,
		      d->since_ns && now > d->since_ns
			      ? (unsigned long long)((now - d->since_ns) / NSEC_PER_SEC)
			      : 0);
}

static void print_destinations(const struct statistics *s, const struct config *c, FILE *out)
{
	uint64_t spool_bytes = 0;

	for (uint32_t i = 0; i < s->n_destinations; i++) {
		const struct status_export *x = &s->counts.exports[i];
		const struct status_destination *d = &s->destinations[i];
		uint64_t dropped = 0;

		for (int why = 0; why < STATUS_N_DROPS; why++)
			dropped += x->dropped[why];
		const struct {
			const char *name;
			uint64_t n;
		} lines[] = {
			{"payloads_sent", x->sent},
			{"samples_sent", x->samples_sent},
			{"payloads_dropped", dropped},
			{"samples_dropped", x->samples_dropped},
			{"profiles_rejected", x->profiles_rejected},
			{"failures", x->failures},
			{"retries", x->retries},
			{"queue_payloads", d->queue_payloads},
			{"queue_bytes", d->queue_bytes},
			{"spool_payloads", d->spool_payloads},
			{"spool_bytes", d->spool_bytes},
		};

		spool_bytes += d->spool_bytes;
		print_state(d, c->exports[i].name, out);
		for (size_t j = 0; j < ARRAY_SIZE(lines); j++)
			(void)fprintf(out, "export.%s.%s %llu\n", c->exports[i].name, lines[j].name,
				      (unsigned long long)lines[j].n);
	}
	print_count(out, "spool_bytes", spool_bytes);
	print_count(out, "store_files", s->store_files);
	print_count(out, "store_bytes", s->store_bytes);
	print_count(out, "store_samples_lost", s->counts.store_samples_lost);
}

static void print_events(const struct statistics *s, FILE *out)
{
	for (uint32_t i = 0; i < s->n_events; i++) {
		const struct status_event *e = &s->counts.events[i];
		const struct {
			const char *name;
			uint64_t n;
		} lines[] = {
			{"samples", e->samples},
			{"samples_lost", e->lost},
			{"throttled", e->throttled},
			{"stood_still_ms", e->stood_still_ms},
		};

		for (size_t j = 0; j < ARRAY_SIZE(lines); j++)
			(void)fprintf(out, "event.%s.%s %llu\n", s->events[i], lines[j].name,
				      (unsigned long long)lines[j].n);
	}
}

void broker_print_status(const struct broker *b, FILE *out)
{
	char text[REDUCED_TEXT_MAX];
	struct statistics s;

	statistics_collect(b, &s);
	(void)fprintf(out, "event %s\n", s.events[0]);
	print_count(out, "rate_hz", s.rate_hz);
	(void)fprintf(out, "interval_seconds %.3f\n", (double)b->options.interval_ns / 1e9);
	print_count(out, "stack_size", s.stack_bytes);
	print_count(out, "cpus", s.n_cpus);
	(void)fprintf(out, "cpu_percent %.3f\ncpu_limit_percent %.4g\nreduced %s\n",
		      s.cpu_used_ppm / 1e4, s.cpu_limit_ppm / 1e4,
		      s.reduced ? statistics_reduced(s.reduced, text, sizeof(text)) : "no");
	(void)fprintf(out, "paused %s\n", s.paused ? "yes" : "no");
	print_count(out, "samples", s.counts.samples);
	print_count(out, "windows", s.counts.windows);
	print_count(out, "payloads", s.counts.payloads);
	print_count(out, "files_set_aside", s.n_files_set_aside);
	print_count(out, "files_refused", s.n_files_refused);
	print_count(out, "interpreters", s.n_interpreters);
	print_count(out, "interpreters_not_allowed", s.n_not_allowed);
	print_count(out, "interpreters_kept_waiting", s.n_kept_waiting);
	print_count(out, "interpreters_too_many", s.n_too_many);
	print_count(out, "interpreter_stacks", s.counts.reader.reads);
	print_count(out, "interpreter_stacks_late", s.counts.reader.late);
	print_count(out, "interpreter_stacks_unproven", s.counts.reader.unproven);
	print_count(out, "reads_passed_over", s.counts.reader.passed_over);
	print_count(out, "labels_refused", s.counts.said.labels_refused);
	print_count(out, "attributes_refused", s.counts.said.texts_refused);
	print_count(out, "drain_gap_max_ms", s.drain_gap_ns / NSEC_PER_MSEC);
	print_count(out, "drain_cpu_max_ms", s.drain_cpu_ns / NSEC_PER_MSEC);
	/* Of windows that are closed. */
	for (int c = PROFILE_SAMPLES + 1; c < PROFILE_N_COUNTERS; c++)
		print_count(out, profile_counter_name((enum profile_counter)c),
			    s.counts.counters[c]);
	print_events(&s, out);
	print_process(out, &s.processes[s.n_processes - 1]); /* the broker */
	for (uint32_t i = 0; i + 1 < s.n_processes; i++)
		print_process(out, &s.processes[i]);
	for (uint32_t i = 0; i + 1 < s.n_processes; i++) {
		print_sandbox(out, &s.processes[i]);
		print_limits(out, b->supervisor, &s.processes[i]);
	}
	if (statistics_has(&s, PEER_FETCHER))
		print_debuginfod(&s.counts.debuginfod, out);
	print_destinations(&s, b->options.config, out);
}

void broker_describe(const struct broker *b, char *buf, size_t size)
{
	uint64_t queue = 0, spool = 0, spool_bytes = 0, dropped = 0;
	const char *down = "";
	struct statistics s;
	char bytes[32], text[REDUCED_TEXT_MAX];
	int n;

	statistics_collect(b, &s);
	for (uint32_t i = 0; i < s.n_destinations; i++) {
		queue += s.destinations[i].queue_payloads;
		spool += s.destinations[i].spool_payloads;
		spool_bytes += s.destinations[i].spool_bytes;
		down = s.destinations[i].down ? b->options.config->exports[i].name : down;
		for (int why = 0; why < STATUS_N_DROPS; why++)
			dropped += s.counts.exports[i].dropped[why];
	}
	n = snprintf(buf, size, "%u CPUs at %u Hz: %llu samples, %llu lost", s.n_cpus, s.rate_hz,
		     (unsigned long long)(s.counts.samples - s.counts.filtered),
		     (unsigned long long)s.counts.counters[PROFILE_SAMPLES_LOST]);
	if (s.reduced && n >= 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, ", without %s",
			      statistics_reduced(s.reduced, text, sizeof(text)));
	if (s.paused && n >= 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, ", paused");
	if (queue && n >= 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n,
			      "; %llu profiles wait, %llu of them on disk (%s)",
			      (unsigned long long)queue, (unsigned long long)spool,
			      text_format_bytes(bytes, sizeof(bytes), spool_bytes));
	if (dropped && n >= 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, "; %llu dropped",
			      (unsigned long long)dropped);
	if (*down && n >= 0 && (size_t)n < size)
		(void)snprintf(buf + n, size - (size_t)n, "; export:%s is unreachable", down);
}
