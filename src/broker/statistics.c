/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "util/clock.h"

/* CPU time since its start, and resident memory. false: it is gone. */
static bool read_load(pid_t pid, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	unsigned long long size, resident;
	clockid_t clock;
	char path[32];
	FILE *f;
	int n;

	if (clock_getcpuclockid(pid, &clock) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fscanf(f, "%llu %llu", &size, &resident);
	(void)fclose(f);
	if (n != 2)
		return false;
	*ret_cpu_ns = clock_get_ns(clock);
	*ret_rss_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

void tree_load(const struct tree *t, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	uint64_t cpu_ns, rss_bytes;

	*ret_cpu_ns = *ret_rss_bytes = 0;
	for (int i = -1; i < PEER_N; i++) {
		pid_t pid = i < 0 ? getpid() : supervisor_pid(t->supervisor, (enum peer)i);

		if (pid <= 0 || !read_load(pid, &cpu_ns, &rss_bytes))
			continue;
		*ret_cpu_ns += cpu_ns;
		*ret_rss_bytes += rss_bytes;
	}
}

void tree_counts(const struct tree *t, struct status_counts *ret)
{
	*ret = t->counts_of_the_dead;
	for (int i = 0; i < PEER_N; i++)
		status_counts_add(ret, &supervisor_status(t->supervisor, (enum peer)i)->counts);
}

static bool is_wanted(const struct tree *t, int process)
{
	if (process == PEER_EXPORTER)
		return !t->options.capture && !t->options.screen;
	if (process == PEER_SCREEN)
		return t->options.screen != NULL;
	if (process == PEER_FETCHER) /* nothing is amiss without it */
		return supervisor_running(t->supervisor, PEER_FETCHER);
	return process != PEER_METRICS || t->metrics.fd >= 0;
}

void statistics_collect(const struct tree *t, struct statistics *ret)
{
	const struct status_page *exporter = supervisor_status(t->supervisor, PEER_EXPORTER);
	uint64_t now = clock_monotonic_ns(), drained = tree_drained_ns(t);

	memset(ret, 0, sizeof(*ret)); /* it is sent as it is, padding and all */
	tree_counts(t, &ret->counts);
	memcpy(ret->destinations, exporter->destinations, sizeof(ret->destinations));
	ret->store_files = exporter->store_files;
	ret->store_bytes = exporter->store_bytes;
	ret->start_unix_ns = t->start_unix_ns;
	ret->drained_before_ns = !drained ? UINT64_MAX : now > drained ? now - drained : 0;
	for (int i = 0; i < STATISTICS_N_PROCESSES; i++) {
		struct statistics_process *p = &ret->processes[i];
		bool broker = i == STATISTICS_BROKER;

		p->pid =
			(uint64_t)(broker ? getpid() : supervisor_pid(t->supervisor, (enum peer)i));
		p->starts = broker ? 1 : supervisor_starts(t->supervisor, (enum peer)i);
		p->wanted = is_wanted(t, i);
		p->ready =
			broker || (p->pid && supervisor_status(t->supervisor, (enum peer)i)->ready);
		if (p->pid)
			(void)read_load((pid_t)p->pid, &p->cpu_ns, &p->rss_bytes);
	}
	ret->n_destinations = (uint32_t)(t->options.config->n_exports < STATUS_MAX_DESTINATIONS
						 ? t->options.config->n_exports
						 : STATUS_MAX_DESTINATIONS);
	ret->n_cpus = t->events[0].cpus.n;
	ret->rate_hz = t->events[0].sample.rate_hz;
	ret->stack_bytes =
		t->events[0].features.frame_pointers ? 0 : t->events[0].sample.stack_bytes;
	ret->n_files_set_aside = supervisor_n_set_aside(t->supervisor);
	ret->paused = t->paused;
	ret->flushing = !tree_flushed(t);
	(void)snprintf(ret->event, sizeof(ret->event), "%s",
		       sample_event_name(&t->events[0].sample, &t->events[0].features));
}
