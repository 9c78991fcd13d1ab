/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of perfwalk record about the capture that it is about to begin. */
#include <stdio.h>
#include <string.h>

#include "src/broker/tasks.h"
#include "src/cmd/record.h"
#include "src/cmd/running.h"
#include "src/render/format.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define MIN_MISSING_NS (100 * NSEC_PER_MSEC)
#define MAX_FORKED     64

/* The filters as they were asked for: "--unit nginx --comm worker"; and where names of the first
 * kind of them are listed. */
static const char *describe_filters(const struct record_options *o, char *buf, size_t size)
{
	static const struct {
		enum config_filter kind;
		const char *option, *list;
	} filters[] = {
		{CONFIG_FILTER_UNIT, "--unit", "perfwalk list units"},
		{CONFIG_FILTER_CONTAINER, "--container", "perfwalk list containers"},
		{CONFIG_FILTER_COMM, "--comm", "perfwalk list processes"},
		{CONFIG_FILTER_USER, "-u", "ps -eo user,pid,comm"},
		{CONFIG_FILTER_CGROUP, "--cgroup", "systemd-cgls"},
	};
	const char *list = NULL;
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(filters) && n < size; i++) {
		const char *value = o->config->include[filters[i].kind];

		if (!value)
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s %s", n ? " " : "", filters[i].option,
				      value);
		list = list ? list : filters[i].list;
	}
	return list;
}

void record_say_if_nothing_matches(const struct record_options *o)
{
	char filters[512];
	const char *list = describe_filters(o, filters, sizeof(filters));

	if (list && o->n_pids == 0 && running_any(o->config) == 0)
		log_warning("no running process matches %s: the capture waits for one; %s shows "
			    "what is there",
			    filters, list);
}

static bool is_one_of(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* The workers of a server: of the process that started them one may think that it has them. */
void record_say_who_was_forked(const struct record_options *o)
{
	pid_t found[OPTIONS_MAX_IDS + MAX_FORKED], pids[OPTIONS_MAX_IDS + MAX_FORKED];
	char list[(OPTIONS_MAX_IDS + MAX_FORKED) * sizeof("4194304,")] = "";
	size_t n = 0, n_given = 0, at = 0, n_found = 0;

	if (!o->threads)
		n_found = tasks_list_processes(o->pids, o->n_pids, found, ARRAY_SIZE(found));
	for (size_t i = 0; i < n_found; i++) {
		bool given = i < o->n_pids;

		if (is_one_of(found[i], pids, n) || (!given && tasks_has_ended(found[i], false)))
			continue;
		pids[n++] = found[i];
		n_given += given;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%d", at ? "," : "",
				       (int)found[i]);
	}
	n -= n_given;
	if (n == 0)
		return;
	if (n_found == ARRAY_SIZE(found) || n + n_given > OPTIONS_MAX_IDS)
		log_info("left out: %zu processes or more that were forked before; --unit and "
			 "--cgroup take whole services",
			 n);
	else
		log_info("left out: %zu process%s forked before; with %s: -p %s", n,
			 n == 1 ? " that was" : "es that were", n == 1 ? "it" : "them", list);
}

/*
 * The kernel says of such a sample how many events it meant to wait for. If they become rare, it
 * shortens the wait, and takes the next event at once, which is then said to be as many as before.
 */
void record_say_what_is_guessed(const struct record_options *o)
{
	for (uint32_t i = 0; i < o->n_events; i++) {
		const struct broker_event *e = &o->events[i];

		if (e->event.name[0] && !e->period && !sample_event_is_time(&e->event) &&
		    !sample_event_is_hardware(&e->event))
			log_warning("%s at a rate: the kernel guesses how many events a sample "
				    "stands for, often many times too many: %s/period=COUNT/ "
				    "samples each COUNT-th one",
				    e->event.name, e->event.name);
	}
}

void record_say_if_plain(const struct broker_event *blocks)
{
	struct sample_circumstances c;

	if (!blocks->switch_fields.plain)
		return;
	sample_read_circumstances(&c);
	if (c.paranoid > 1 && !sample_has_capability(&c, SAMPLE_CAP_PERFMON) &&
	    !sample_has_capability(&c, SAMPLE_CAP_SYS_ADMIN))
		log_warning("only threads that stay blocked for long have stacks, other blocks are "
			    "[not seen]: run as root, or: sysctl kernel.perf_event_paranoid=1");
}

void record_say_what_is_missing(const struct record_options *o, const struct broker *b,
				uint64_t user_ns)
{
	const struct broker_event *e = &o->events[0];
	uint64_t samples, lost, seen_ns;

	if (broker_samples_whole_cpus(b) || o->only_kernel || e->period || !e->rate_hz ||
	    (e->event.name[0] && !sample_event_is_time(&e->event)))
		return;
	for (size_t i = 0; i < CONFIG_N_FILTERS; i++) {
		if (o->config->include[i])
			return;
	}
	broker_progress(b, &samples, &lost);
	seen_ns = (samples + lost) * NSEC_PER_SEC / e->rate_hz;
	if (user_ns < MIN_MISSING_NS || seen_ns > user_ns - user_ns / 5)
		return;
	log_warning("%.1f of the %.1f s that the command was in user code have no samples: for "
		    "want of privileges each of its threads and processes is sampled by itself, "
		    "after each %.1f ms of its own, so many lived for less: run as root, or "
		    "sysctl kernel.perf_event_paranoid=0, or take more samples (-F %u)",
		    (double)(user_ns - seen_ns) / NSEC_PER_SEC, (double)user_ns / NSEC_PER_SEC,
		    1e3 / e->rate_hz, e->rate_hz * 10);
}

/* That of CPU time is found out later. */
static const char *event_name(const struct broker_event *e)
{
	return *e->event.name ? e->event.name : "CPU time";
}

void record_say_what_is_left_out(const struct record_options *o)
{
	char left_out[SAMPLE_MAX_EVENTS * sizeof(o->events[0].event.name)] = "", names[256];
	const char *kept = o->asked ? o->asked : event_name(&o->events[0]);
	size_t n = 0;

	for (uint32_t i = 0; i < o->n_events && n < sizeof(left_out); i++) {
		const struct broker_event *e = &o->events[i];

		if (e->use != SAMPLE_USE_SWITCHES && e->use != SAMPLE_USE_WAKEUPS &&
		    strcmp(event_name(e), kept) != 0)
			n += (size_t)snprintf(left_out + n, sizeof(left_out) - n, "%s%s",
					      n ? ", " : "", event_name(e));
	}
	for (uint32_t i = 0; i < o->outputs.n && o->n_events > 1; i++) {
		const struct format *f = outputs_format(&o->outputs, i);

		if (!f->all_types)
			log_warning("%s will hold %s alone, without %s: %s has one event; these "
				    "formats hold all: %s",
				    o->outputs.items[i].path, kept, left_out, f->name,
				    format_names_of_all_types(names, sizeof(names)));
	}
}

/* "cpu-clock at 99 Hz", "page-faults (each one)"; the programs decide which blocks are picked. */
size_t record_describe_event(const struct broker_event *e, char *buf, size_t size)
{
	if (e->use == SAMPLE_USE_PICKED || e->use == SAMPLE_USE_ENDED)
		return (size_t)snprintf(buf, size, "%s", e->event.name);
	if (!e->period)
		return (size_t)snprintf(buf, size, "%s at %u Hz", e->event.name, e->rate_hz);
	if (e->period == 1)
		return (size_t)snprintf(buf, size, "%s (each one)", e->event.name);
	return (size_t)snprintf(buf, size,
				sample_event_is_time(&e->event) ? "%s (every %llu ns)"
								: "%s (one in %llu)",
				e->event.name, (unsigned long long)e->period);
}

/* ": cpu-clock at 99 Hz and page-faults (each one)". */
static const char *describe_events(const struct record_options *o, char *buf, size_t size)
{
	uint32_t n_events = o->n_events - (o->off_cpu ? 2 : 0) - o->locks;
	const char *blocked = o->locks	   ? ", how long threads are blocked, and their locks,"
			      : o->off_cpu ? ", and how long threads are blocked,"
					   : "";
	size_t n = 0;

	/* CPU time, by what is found out later. */
	if (!o->events[0].event.name[0]) {
		(void)snprintf(buf, size, " at %u Hz%s", o->events[0].rate_hz, blocked);
		return buf;
	}
	for (uint32_t i = 0; i < n_events && n < size; i++) {
		n += (size_t)snprintf(buf + n, size - n, "%s",
				      i == 0		 ? ": "
				      : i + 1 < n_events ? ", "
							 : " and ");
		if (n < size)
			n += record_describe_event(&o->events[i], buf + n, size - n);
	}
	if (n < size)
		(void)snprintf(buf + n, size - n, "%s", blocked);
	return buf;
}

void record_say_started(const struct record_options *o, bool command, unsigned int n_cpus)
{
	const char *whole = command	 ? "the command"
			    : o->threads ? "the given threads"
			    : o->n_pids	 ? "the given processes"
					 : "the whole host";
	char filters[512], events[800];
	bool filtered = describe_filters(o, filters, sizeof(filters));

	log_info("recording %s%s%s%s%s on %u CPUs", filtered && !o->n_pids ? "" : whole,
		 filtered && o->n_pids ? ", only what matches "
		 : filtered	       ? "what matches "
				       : "",
		 filters, filtered && o->n_pids ? "," : "",
		 describe_events(o, events, sizeof(events)), n_cpus);
}
