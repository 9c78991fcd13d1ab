/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family has HELP, TYPE and a line for each value of its labels. Names end with the unit, those
 * of counters with _total; times are in seconds.
 */
#include "config.h"

#include "src/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "util/cleanup.h"
#include "util/clock.h"

static void begin(FILE *out, const char *name, const char *type, const char *help)
{
	(void)fprintf(out, "# HELP perfwalk_%s %s\n# TYPE perfwalk_%s %s\n", name, help, name,
		      type);
}

static void put(FILE *out, const char *name, uint64_t n)
{
	(void)fprintf(out, "perfwalk_%s %" PRIu64 "\n", name, n);
}

static void put_label(FILE *out, const char *name, const char *label, const char *value, uint64_t n)
{
	(void)fprintf(out, "perfwalk_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value, n);
}

static void put_counter(FILE *out, const char *name, const char *help, uint64_t n)
{
	begin(out, name, "counter", help);
	put(out, name, n);
}

static void put_gauge(FILE *out, const char *name, const char *help, uint64_t n)
{
	begin(out, name, "gauge", help);
	put(out, name, n);
}

static void put_seconds(FILE *out, const char *name, const char *help, uint64_t ns)
{
	begin(out, name, "gauge", help);
	(void)fprintf(out, "perfwalk_%s %.3f\n", name, (double)ns / 1e9);
}

/* Escapes a name from the config for a label's value. */
static const char *escape(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (strchr("\\\"\n", *text))
			buf[n++] = '\\';
		buf[n++] = *text == '\n' ? 'n' : *text;
	}
	buf[n] = '\0';
	return buf;
}

/* ---- Sampling ---- */

static void print_samples(const struct statistics *s, FILE *out)
{
	const uint64_t *c = s->counts.counters;

	put_counter(out, "samples_total", "Samples taken from the kernel's rings.",
		    s->counts.samples);
	put_counter(out, "samples_filtered_total", "Samples that [filter] leaves out.",
		    s->counts.filtered);
	begin(out, "samples_lost_total", "counter",
	      "Samples missing from the profiles: the ring was full, memory ran out, or a process "
	      "of perfwalk died.");
	put_label(out, "samples_lost_total", "reason", "ring_full", c[PROFILE_SAMPLES_LOST]);
	put_label(out, "samples_lost_total", "reason", "memory", c[PROFILE_SAMPLES_DROPPED]);
	put_label(out, "samples_lost_total", "reason", "process_died", c[PROFILE_SAMPLES_DIED]);
	put_counter(out, "throttles_total", "Times the kernel throttled an event.",
		    c[PROFILE_SAMPLES_THROTTLED]);
	put_counter(out, "records_bad_total", "Ring records that contradict themselves.",
		    c[PROFILE_RECORDS_BAD]);
	put_counter(out, "sideband_lost_total", "Mapping, fork, name or exit records lost.",
		    c[PROFILE_SIDEBAND_LOST]);
	put_counter(out, "switches_lost_total", "Context switches lost: a ring was full.",
		    c[PROFILE_SWITCHES_LOST]);
	put_counter(out, "switches_refused_total",
		    "Context switches and stacks of waits without room in the profiler's tables.",
		    c[PROFILE_SWITCHES_REFUSED]);
	begin(out, "paused_seconds_total", "counter",
	      "Time for which perfwalk ctl pause stopped sampling.");
	(void)fprintf(out, "perfwalk_paused_seconds_total %.3f\n",
		      (double)c[PROFILE_PAUSED_MS] / 1e3);
}

/* By event; the families without the label have the sums. */
static void print_events(const struct statistics *s, FILE *out)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} families[] = {
		{"event_samples_total", "Samples taken, by event.",
		 offsetof(struct status_event, samples)},
		{"event_samples_lost_total", "Samples lost because the ring was full, by event.",
		 offsetof(struct status_event, lost)},
		{"event_throttles_total", "Times the kernel throttled the event.",
		 offsetof(struct status_event, throttled)},
	};
	char name[256];

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		begin(out, families[i].name, "counter", families[i].help);
		for (uint32_t k = 0; k < s->n_events; k++) {
			uint64_t n;

			memcpy(&n, (const char *)&s->counts.events[k] + families[i].offset,
			       sizeof(n));
			put_label(out, families[i].name, "event",
				  escape(s->events[k], name, sizeof(name)), n);
		}
	}
}

/* Events with a budget; in seconds, summed over all CPUs. */
static void print_standstill(const struct statistics *s, FILE *out)
{
	static const char family[] = "event_stood_still_seconds_total";
	char name[256];

	begin(out, family, "counter",
	      "Time that the event stood still because its budget was used up, of all CPUs.");
	for (uint32_t i = 0; i < s->n_events; i++)
		(void)fprintf(out, "perfwalk_%s{event=\"%s\"} %.3f\n", family,
			      escape(s->events[i], name, sizeof(name)),
			      (double)s->counts.events[i].stood_still_ms / 1e3);
}

static void print_stacks(const struct statistics *s, FILE *out)
{
	const uint64_t *c = s->counts.counters;

	put_counter(out, "user_stacks_total", "Samples with a user stack.", c[PROFILE_USER_STACKS]);
	put_counter(out, "stacks_truncated_total", "User stacks larger than the copy.",
		    c[PROFILE_STACKS_TRUNCATED]);
	begin(out, "unwind_errors_total", "counter",
	      "User stacks that end early for another reason, by cause.");
	for (int i = PROFILE_STACKS_TRUNCATED + 1; i <= PROFILE_STACKS_NO_REGS; i++)
		put_label(out, "unwind_errors_total", "cause",
			  profile_counter_name((enum profile_counter)i) + strlen("stacks_"), c[i]);
	put_counter(out, "stacks_continued_total",
		    "User stacks continued beyond the copy by frame pointers.",
		    c[PROFILE_STACKS_CONTINUED]);
	put_counter(out, "stacks_runtime_late_total",
		    "User stacks whose interpreter's frames were not read in time.",
		    c[PROFILE_STACKS_RUNTIME_LATE]);
	put_counter(out, "stacks_runtime_unread_total",
		    "User stacks whose interpreter is not read, or not at samples of that event.",
		    c[PROFILE_STACKS_RUNTIME_UNREAD]);
	put_counter(out, "frames_unnamed_total", "Distinct frames of each window without a name.",
		    c[PROFILE_FRAMES_UNNAMED]);
	put_counter(out, "frames_put_off_total",
		    "Frames without a name because there was no time to read their files.",
		    c[PROFILE_FRAMES_PUT_OFF]);
	put_gauge(out, "files_set_aside",
		  "Files set aside because the process that read them died or took too long.",
		  s->n_files_set_aside);
	put_counter(out, "files_refused_total",
		    "Requests for files refused because a filesystem did not answer.",
		    s->n_files_refused);
}

static void print_blocked_spans(const uint64_t *c, FILE *out)
{
	static const char family[] = "spans_blocked_seconds_total";
	static const struct {
		enum profile_counter counter;
		const char *span;
	} parts[] = {{PROFILE_SPANS_BLOCKED_LINKED_US, "linked"},
		     {PROFILE_SPANS_BLOCKED_OUTSIDE_US, "outside"},
		     {PROFILE_SPANS_BLOCKED_UNPROVEN_US, "unproven"}};

	begin(out, family, "counter",
	      "Blocked time of programs that tell spans, by what is known of the span.");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		(void)fprintf(out, "perfwalk_%s{span=\"%s\"} %.6f\n", family, parts[i].span,
			      (double)c[parts[i].counter] / 1e6);
}

static void print_interpreters(const struct statistics *s, FILE *out)
{
	const struct status_reader *r = &s->counts.reader;
	const uint64_t *c = s->counts.counters;

	put_gauge(out, "interpreters",
		  "Processes that are read at their samples: with an interpreter, or with spans.",
		  s->n_interpreters);
	begin(out, "interpreters_refused_total", "counter",
	      "Such processes that are not read, by cause.");
	put_label(out, "interpreters_refused_total", "cause", "not_allowed", s->n_not_allowed);
	put_label(out, "interpreters_refused_total", "cause", "kept_waiting", s->n_kept_waiting);
	put_label(out, "interpreters_refused_total", "cause", "too_many", s->n_too_many);
	put_counter(out, "interpreter_stacks_total", "Samples of processes with an interpreter.",
		    r->reads);
	put_counter(out, "interpreter_stacks_late_total",
		    "Of these, samples whose stack was not read in time, or not at all.", r->late);
	put_counter(out, "interpreter_stacks_unproven_total",
		    "Of these, samples in which the interpreter's frames formed no chain.",
		    r->unproven);
	put_counter(out, "spans_linked_total",
		    "Samples of programs that tell spans, with the id of their span.",
		    c[PROFILE_SPANS_LINKED]);
	put_counter(out, "spans_outside_total", "Samples of such programs in no span.",
		    c[PROFILE_SPANS_OUTSIDE]);
	begin(out, "spans_unproven_total", "counter",
	      "Samples of such programs without an id, because no span is proven, by cause.");
	for (int i = PROFILE_SPANS_UNREAD; i <= PROFILE_SPANS_UNREADABLE; i++)
		put_label(out, "spans_unproven_total", "cause",
			  profile_counter_name((enum profile_counter)i) + strlen("spans_"), c[i]);
	print_blocked_spans(c, out);
	put_counter(out, "reads_passed_over_total",
		    "Samples that came while a reader read another one.", r->passed_over);
	put_counter(out, "labels_refused_total",
		    "Samples without some labels of their program, whose keys were reserved or "
		    "repeated, or which were too many or too long.",
		    s->counts.said.labels_refused);
	put_counter(out, "attributes_refused_total",
		    "Attributes that programs published and that were too long or too many.",
		    s->counts.said.texts_refused);
}

static void print_windows(const struct statistics *s, FILE *out)
{
	put_counter(out, "windows_total", "Windows that the profiler has closed.",
		    s->counts.windows);
	put_counter(out, "windows_named_total", "Windows that the symbolizer has named.",
		    s->counts.windows_named);
	put_counter(out, "payloads_total", "Export requests made.", s->counts.payloads);
	put_counter(out, "payload_bytes_total", "Bytes of all export requests before compression.",
		    s->counts.payload_bytes);
}

static void print_debuginfod(const struct status_debuginfod *d, FILE *out)
{
	put_counter(out, "debuginfod_fetched_total", "Debug files fetched.", d->fetched);
	put_counter(out, "debuginfod_bytes_total", "Bytes of all debug files fetched, kept or not.",
		    d->bytes);
	put_counter(out, "debuginfod_missing_total",
		    "Debug files that no server has, or that exceed the limits.", d->missing);
	put_counter(out, "debuginfod_failures_total",
		    "Requests for debug files that failed or had no usable answer.", d->failures);
	put_counter(out, "debuginfod_refused_total",
		    "Requests for debug files refused because the queue was full.", d->refused);
	put_counter(out, "debuginfod_evicted_total",
		    "Debug files removed to make room for newer ones.", d->evicted);
}

static void print_budget(const struct statistics *s, FILE *out)
{
	static const struct {
		const char *what;
		uint32_t bits;
	} rows[] = {
		{"lines", REDUCED_BIT(REDUCED_LINES)}, {"inlines", REDUCED_BIT(REDUCED_INLINES)},
		{"names", REDUCED_BIT(REDUCED_NAMES)}, {"stacks", REDUCED_BIT(REDUCED_STACKS)},
		{"rate", REDUCED_RATE_BITS},	       {"switches", REDUCED_SWITCHES_BITS}};

	begin(out, "cpu_usage_ratio", "gauge",
	      "CPU time of all processes of perfwalk as a part of all CPUs, in the last window.");
	(void)fprintf(out, "perfwalk_cpu_usage_ratio %.6f\n", s->cpu_used_ppm / 1e6);
	begin(out, "cpu_limit_ratio", "gauge",
	      "Its limit, [limits] cpu, as a part of all CPUs; 1: no limit.");
	(void)fprintf(out, "perfwalk_cpu_limit_ratio %.6f\n", s->cpu_limit_ppm / 1e6);
	begin(out, "reduced", "gauge", "1 for each reduction of quality to stay within the limit.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		put_label(out, "reduced", "what", rows[i].what, (s->reduced & rows[i].bits) != 0);
}

static void print_state(const struct statistics *s, FILE *out)
{
	begin(out, "build_info", "gauge", "The version.");
	put_label(out, "build_info", "version", PACKAGE_VERSION, 1);
	begin(out, "start_time_seconds", "gauge", "When the daemon was started, in Unix time.");
	(void)fprintf(out, "perfwalk_start_time_seconds %.3f\n", (double)s->start_unix_ns / 1e9);
	put_gauge(out, "cpus", "CPUs that are sampled.", s->n_cpus);
	put_gauge(out, "sample_rate_hertz", "Requested samples a second on each busy CPU.",
		  s->rate_hz);
	put_gauge(out, "stack_size_bytes", "Bytes of the user stack copied with each sample.",
		  s->stack_bytes);
	print_budget(s, out);
	put_gauge(out, "paused", "1 while perfwalk ctl pause stops sampling.", s->paused);
	begin(out, "last_drain_timestamp_seconds", "gauge",
	      "When the rings were last read, in Unix time; 0: not yet.");
	(void)fprintf(out, "perfwalk_last_drain_timestamp_seconds %.3f\n",
		      s->drained_before_ns == UINT64_MAX
			      ? 0.0
			      : (double)(clock_realtime_ns() - s->drained_before_ns) / 1e9);
	put_seconds(out, "drain_gap_max_seconds",
		    "Longest time between two reads of all rings, since the profiler started.",
		    s->drain_gap_ns);
	put_seconds(out, "drain_cpu_max_seconds",
		    "Most CPU time of the profiler between two reads of all rings, since it "
		    "started.",
		    s->drain_cpu_ns);
}

/* ---- Destinations ---- */

struct export_family {
	const char *name, *type, *help;
	size_t offset; /* of a uint64_t in struct status_export or struct status_destination */
};

#define COUNT(field) offsetof(struct status_export, field)
#define NOW(field)   offsetof(struct status_destination, field)

static const struct export_family export_counts[] = {
	{"export_payloads_sent_total", "counter", "Requests accepted by the destination.",
	 COUNT(sent)},
	{"export_samples_sent_total", "counter", "Samples of accepted requests.",
	 COUNT(samples_sent)},
	{"export_sent_bytes_total", "counter", "Body bytes of accepted requests, as sent.",
	 COUNT(bytes_sent)},
	{"export_samples_dropped_total", "counter", "Samples of dropped requests.",
	 COUNT(samples_dropped)},
	{"export_profiles_rejected_total", "counter",
	 "Profiles refused by the destination within accepted requests.", COUNT(profiles_rejected)},
	{"export_failures_total", "counter", "Failed attempts to send a request.", COUNT(failures)},
	{"export_retries_total", "counter", "Failed attempts that are repeated.", COUNT(retries)},
	{"export_payloads_spooled_total", "counter", "Requests written to the spool.",
	 COUNT(spooled)},
	{"export_payloads_split_total", "counter",
	 "Requests split in two because they were too large.", COUNT(split)},
};
static const struct export_family export_gauges[] = {
	{"export_queue_payloads", "gauge", "Requests waiting, in memory and on disk.",
	 NOW(queue_payloads)},
	{"export_queue_bytes", "gauge", "Memory used by waiting requests.", NOW(queue_bytes)},
	{"export_spool_files", "gauge", "Requests waiting on disk.", NOW(spool_payloads)},
	{"export_spool_bytes", "gauge", "Bytes of the requests waiting on disk.", NOW(spool_bytes)},
	{"export_down", "gauge", "1 while the last attempt failed and will be repeated.",
	 NOW(down)},
};

static void print_families(const struct export_family *families, size_t n, const void *base,
			   size_t size, const struct statistics *s, const char *const *names,
			   FILE *out)
{
	char name[256];

	for (size_t i = 0; i < n; i++) {
		begin(out, families[i].name, families[i].type, families[i].help);
		for (uint32_t d = 0; d < s->n_destinations; d++) {
			uint64_t v;

			memcpy(&v, (const char *)base + d * size + families[i].offset, sizeof(v));
			put_label(out, families[i].name, "destination",
				  escape(names[d], name, sizeof(name)), v);
		}
	}
}

static void print_drops(const struct statistics *s, const char *const *names, FILE *out)
{
	char name[256];

	begin(out, "export_payloads_dropped_total", "counter", "Dropped requests, by reason.");
	for (uint32_t d = 0; d < s->n_destinations; d++) {
		for (int why = 0; why < STATUS_N_DROPS; why++)
			(void)fprintf(out,
				      "perfwalk_export_payloads_dropped_total{destination=\"%s\","
				      "reason=\"%s\"} %" PRIu64 "\n",
				      escape(names[d], name, sizeof(name)),
				      status_drop_name((enum status_drop)why),
				      s->counts.exports[d].dropped[why]);
	}
}

static void print_latency(const struct statistics *s, const char *const *names, FILE *out)
{
	static const char name[] = "perfwalk_export_request_duration_seconds";
	char label[256];

	begin(out, "export_request_duration_seconds", "histogram",
	      "Duration of requests, whatever their outcome.");
	for (uint32_t d = 0; d < s->n_destinations; d++) {
		const struct status_export *x = &s->counts.exports[d];
		uint64_t n = 0;

		(void)escape(names[d], label, sizeof(label));
		for (int i = 0; i < STATUS_LATENCY_BUCKETS; i++) {
			n += x->latency[i];
			(void)fprintf(out, "%s_bucket{destination=\"%s\",le=\"", name, label);
			if (i < STATUS_LATENCY_BUCKETS - 1)
				(void)fprintf(out, "%g", (double)status_latency_bounds_ns[i] / 1e9);
			else
				(void)fputs("+Inf", out);
			(void)fprintf(out, "\"} %" PRIu64 "\n", n);
		}
		(void)fprintf(
			out,
			"%s_sum{destination=\"%s\"} %.6f\n%s_count{destination=\"%s\"} %" PRIu64
			"\n",
			name, label, (double)x->latency_sum_ns / 1e9, name, label, n);
	}
}

static void print_store(const struct statistics *s, FILE *out)
{
	put_gauge(out, "store_files", "Files of the local store.", s->store_files);
	put_gauge(out, "store_bytes", "Bytes of the local store's files.", s->store_bytes);
	put_counter(out, "store_samples_lost_total", "Samples that could not be kept in the store.",
		    s->counts.store_samples_lost);
}

/* ---- Processes ---- */

static void print_processes(const struct statistics *s, FILE *out)
{
	const struct statistics_process *p = s->processes;

	begin(out, "process_cpu_seconds_total", "counter",
	      "CPU time of the current process of the role.");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (p[i].pid)
			(void)fprintf(out, "perfwalk_process_cpu_seconds_total{role=\"%s\"} %.2f\n",
				      p[i].name, (double)p[i].cpu_ns / 1e9);
	}
	begin(out, "process_resident_memory_bytes", "gauge",
	      "Resident memory, including shared parts.");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (p[i].pid)
			put_label(out, "process_resident_memory_bytes", "role", p[i].name,
				  p[i].rss_bytes);
	}
	begin(out, "process_starts_total", "counter", "How often a process was started.");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (p[i].wanted)
			put_label(out, "process_starts_total", "role", p[i].name, p[i].starts);
	}
}

void exposition_print(const struct statistics *s, const char *const *names, FILE *out)
{
	print_state(s, out);
	print_samples(s, out);
	print_events(s, out);
	print_standstill(s, out);
	print_stacks(s, out);
	print_interpreters(s, out);
	print_windows(s, out);
	if (s->n_destinations > 0) {
		print_families(export_counts, sizeof(export_counts) / sizeof(*export_counts),
			       s->counts.exports, sizeof(*s->counts.exports), s, names, out);
		print_families(export_gauges, sizeof(export_gauges) / sizeof(*export_gauges),
			       s->destinations, sizeof(*s->destinations), s, names, out);
		print_drops(s, names, out);
		print_latency(s, names, out);
	}
	if (statistics_has(s, PEER_FETCHER))
		print_debuginfod(&s->counts.debuginfod, out);
	print_store(s, out);
	print_processes(s, out);
}
