/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/opener/helper.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "util/clock.h"

static uint64_t cpu_ns_of(pid_t pid)
{
	return pid > 0 ? clock_process_ns(pid) : 0;
}

static uint64_t rss_bytes_of(pid_t pid)
{
	unsigned long long size, resident;
	char path[32];
	FILE *f;
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	n = fscanf(f, "%llu %llu", &size, &resident);
	(void)fclose(f);
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t sum_of_all(const struct broker *b, uint64_t (*of)(pid_t pid))
{
	uint64_t sum = of(getpid()) + of(opener_helper_pid(supervisor_opener(b->supervisor)));
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(b->supervisor, &at, &who);)
		sum += of(supervisor_pid(b->supervisor, who));
	return sum;
}

/* The children that were reaped are in the times of those. */
uint64_t broker_cpu_ns(const struct broker *b)
{
	uint64_t sum = sum_of_all(b, cpu_ns_of);
	struct rusage dead;

	if (getrusage(RUSAGE_CHILDREN, &dead) == 0)
		sum += (uint64_t)(dead.ru_utime.tv_sec + dead.ru_stime.tv_sec) * NSEC_PER_SEC +
		       (uint64_t)(dead.ru_utime.tv_usec + dead.ru_stime.tv_usec) * NSEC_PER_USEC;
	return sum;
}

void broker_load(const struct broker *b, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	*ret_cpu_ns = broker_cpu_ns(b);
	*ret_rss_bytes = sum_of_all(b, rss_bytes_of);
}

void broker_counts(const struct broker *b, struct status_counts *ret)
{
	struct peer_id who;

	*ret = b->counts_of_the_dead;
	for (uint32_t i = 0; b->ledger && i < SAMPLE_MAX_EVENTS; i++) {
		const struct sample_tally read = ledger_sum(b->ledger, i);

		ret->samples += read.samples;
		ret->filtered += read.filtered;
		ret->events[i].samples += read.samples;
		ret->events[i].stood_still_ms = b->events[i].stood_still_ns / NSEC_PER_MSEC;
	}
	if (!supervisor_running(b->supervisor, peer_only(PEER_SYMBOLIZER)))
		status_counts_add(ret, &b->last_symbolizer);
	for (uint32_t at = 0; supervisor_next(b->supervisor, &at, &who);)
		status_counts_add(ret, &supervisor_status(b->supervisor, who)->counts);
}

static struct statistics_process *add_process(struct statistics *s, const char *name, uint32_t kind,
					      pid_t pid)
{
	struct statistics_process *p = &s->processes[s->n_processes++];

	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	p->kind = (uint8_t)kind;
	p->pid = (uint32_t)pid;
	p->cpu_ns = cpu_ns_of(pid);
	p->rss_bytes = rss_bytes_of(pid);
	return p;
}

static void add_child(const struct supervisor *s, struct peer_id who, struct statistics *ret)
{
	uint64_t starts = supervisor_starts(s, who);
	bool wanted = supervisor_wanted(s, who);
	pid_t pid = supervisor_pid(s, who);
	struct statistics_process *p;

	if (!starts && !wanted)
		return;
	p = add_process(ret, supervisor_name(s, who), who.kind, pid);
	p->starts = (uint32_t)starts;
	p->wanted = wanted;
	p->ready = pid && supervisor_status(s, who)->ready;
	if (p->ready)
		p->sandbox = supervisor_status(s, who)->sandbox;
}

/* What holds for both. */
static void weaken(struct status_sandbox *s, const struct status_sandbox *other)
{
	s->seccomp = other->seccomp == SANDBOX_NO ? other->seccomp : s->seccomp;
	s->landlock = other->landlock < s->landlock ? other->landlock : s->landlock;
	s->no_network &= other->no_network;
	s->uid = other->uid < s->uid ? other->uid : s->uid;
}

/* One line for all of them; by itself nothing wants them. */
static void add_readers(const struct supervisor *s, struct statistics *ret)
{
	struct statistics_process *p = NULL;
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(s, &at, &who);) {
		pid_t pid = supervisor_pid(s, who);

		if (who.kind != PEER_READER || !pid)
			continue;
		if (!p) {
			p = add_process(ret, "readers", PEER_READER, pid);
			p->sandbox = supervisor_status(s, who)->sandbox;
			p->ready = supervisor_status(s, who)->ready;
		} else {
			/* The page of one that has not started says nothing yet. */
			if (p->ready && supervisor_status(s, who)->ready)
				weaken(&p->sandbox, &supervisor_status(s, who)->sandbox);
			p->ready &= supervisor_status(s, who)->ready;
			p->cpu_ns += cpu_ns_of(pid);
			p->rss_bytes += rss_bytes_of(pid);
		}
		p->starts += (uint32_t)supervisor_starts(s, who);
	}
}

/* It is there from the first request on, and by itself nothing wants it. */
static void add_opener(const struct opener_helper *opener, struct statistics *ret)
{
	struct statistics_process *p;

	if (!opener_helper_pid(opener))
		return;
	p = add_process(ret, "opener", STATISTICS_OPENER, opener_helper_pid(opener));
	p->ready = 1;
	p->sandbox.seccomp = (uint8_t)opener_helper_seccomp(opener);
}

static void add_processes(const struct supervisor *s, struct statistics *ret)
{
	struct statistics_process *broker;
	struct peer_id who;

	for (int kind = 0; kind < PEER_N; kind++) {
		if (kind == PEER_READER) {
			add_readers(s, ret);
			continue;
		}
		for (uint32_t at = 0; supervisor_next(s, &at, &who);) {
			if ((int)who.kind == kind)
				add_child(s, who, ret);
		}
	}
	add_opener(supervisor_opener(s), ret);
	broker = add_process(ret, "broker", STATISTICS_BROKER, getpid());
	broker->starts = broker->wanted = broker->ready = 1;
}

_Static_assert(SUPERVISOR_MAX_CHILDREN - READERS_MAX + 3 <= STATISTICS_MAX_PROCESSES,
	       "all have a row, and the readers one");

bool broker_flushed(const struct broker *b)
{
	return supervisor_status(b->supervisor, peer_only(PEER_PROFILER))->flushed >= b->flush_id;
}

uint64_t broker_drained_ns(const struct broker *b)
{
	return supervisor_status(b->supervisor, peer_only(PEER_PROFILER))->drained_ns;
}

void statistics_collect(const struct broker *b, struct statistics *ret)
{
	const struct status_page *exporter =
		supervisor_status(b->supervisor, peer_only(PEER_EXPORTER));
	const struct status_page *profiler =
		supervisor_status(b->supervisor, peer_only(PEER_PROFILER));
	uint64_t now = clock_monotonic_ns(), drained = broker_drained_ns(b);

	memset(ret, 0, sizeof(*ret)); /* it is sent as it is, padding and all */
	broker_counts(b, &ret->counts);
	memcpy(ret->destinations, exporter->destinations, sizeof(ret->destinations));
	ret->store_files = exporter->store_files;
	ret->store_bytes = exporter->store_bytes;
	ret->start_unix_ns = b->start_unix_ns;
	ret->drain_gap_ns = profiler->drain_gap_ns;
	ret->drain_cpu_ns = profiler->drain_cpu_ns;
	ret->drained_before_ns = !drained ? UINT64_MAX : now > drained ? now - drained : 0;
	add_processes(b->supervisor, ret);
	ret->n_destinations = (uint32_t)(b->options.config->n_exports < STATUS_MAX_DESTINATIONS
						 ? b->options.config->n_exports
						 : STATUS_MAX_DESTINATIONS);
	ret->n_cpus = b->events[0].cpus.n;
	ret->rate_hz = b->events[0].sample.rate_hz;
	ret->stack_bytes =
		b->events[0].features.frame_pointers ? 0 : b->events[0].sample.stack_bytes;
	ret->cpu_used_ppm = b->budget.used_ppm;
	ret->cpu_limit_ppm = b->options.config->cpu_ppm;
	ret->reduced = b->budget.reduced;
	ret->n_files_set_aside = supervisor_n_set_aside(b->supervisor);
	ret->n_files_refused = opener_helper_n_refused(supervisor_opener(b->supervisor));
	ret->n_interpreters = b->readers.n_clients;
	ret->n_not_allowed = b->readers.n_not_allowed;
	ret->n_kept_waiting = b->readers.n_set_aside;
	ret->n_too_many = b->readers.n_too_many + (uint32_t)ret->counts.said.programs_refused;
	ret->paused = b->paused;
	ret->flushing = !broker_flushed(b);
	ret->n_events = b->options.n_events;
	for (uint32_t i = 0; i < b->options.n_events; i++)
		(void)snprintf(ret->events[i], sizeof(ret->events[i]), "%s",
			       sample_event_name(&b->events[i].sample, &b->events[i].features));
}
