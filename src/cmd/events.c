/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/events.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define MIN_RING_BYTES (UINT64_C(64) << 10)

void events_init(struct events *e, const pid_t *pids, size_t n_pids)
{
	*e = (struct events){.pids = pids, .n_pids = n_pids};
	e->cpus.max = EVENTS_MAX_CPUS;
	e->attached.max = EVENTS_MAX_TASKS;
}

void events_deinit(struct events *e)
{
	events_close(e);
	array_deinit(&e->attached);
	array_deinit(&e->cpus);
}

int events_probe(struct events *e, const struct sample_options *want)
{
	char error[1024] = "";
	int r;

	e->sample = *want;
	r = sample_probe(&e->sample, e->n_pids > 0 ? e->pids[0] : -1, &e->features, error,
			 sizeof(error));
	if (r < 0) {
		log_error("%s", error);
		return r;
	}
	e->sample.rate_hz = sample_rate_now(&e->sample);
	if (e->sample.rate_hz < want->rate_hz)
		log_warning(
			"kernel.perf_event_max_sample_rate allows %u samples a second now, not %u",
			e->sample.rate_hz, want->rate_hz);
	return 0;
}

static void close_cpu(struct cpu_events *c)
{
	ring_unmap(&c->sample);
	ring_unmap(&c->sideband);
	sample_close_cpu(&c->events);
}

static int open_cpu(struct events *e, int cpu, pid_t pid)
{
	struct cpu_events *c = array_push(&e->cpus);
	char error[512] = "";
	int r;

	if (!c)
		return -ENOMEM;
	r = sample_open_cpu(&e->sample, &e->features, cpu, pid, NULL, &c->events, error,
			    sizeof(error));
	if (r < 0) {
		e->cpus.n--;
		if (r != -ENODEV && r != -ESRCH)
			log_error("%s", error);
		return r;
	}
	c->events.sample_ring_bytes = e->sample.ring_bytes;
	c->events.sideband_ring_bytes = e->sample.sideband_bytes;
	r = ring_map(&c->sample, c->events.sample_fd, &c->events.sample_ring_bytes, true);
	if (r == 0)
		r = ring_map(&c->sideband, c->events.sideband_fd, &c->events.sideband_ring_bytes,
			     true);
	if (r < 0) {
		ring_explain(r, error, sizeof(error));
		log_error("CPU %d: %s", cpu, error);
		close_cpu(c);
		e->cpus.n--;
		return r;
	}
	return 0;
}

/*
 * Without CAP_IPC_LOCK all rings come out of one quota: what the first got would be missing for the
 * others, which would lose most of their samples. Then all get the same part of it.
 */
static int share_quota(struct events *e, int n_cpus, int cpu, pid_t pid)
{
	uint64_t got = e->cpus.items[0].events.sample_ring_bytes, asked = e->sample.ring_bytes;
	uint64_t part = got;
	char want[32], have[32];

	if (got >= asked)
		return 0;
	while (n_cpus > 1 && part > MIN_RING_BYTES && part * (uint64_t)n_cpus > got)
		part /= 2;
	log_warning("the kernel allows rings of %s instead of %s a CPU: raise "
		    "kernel.perf_event_mlock_kb if samples get lost",
		    text_format_bytes(have, sizeof(have), part),
		    text_format_bytes(want, sizeof(want), asked));
	e->sample.ring_bytes = part;
	close_cpu(&e->cpus.items[0]);
	e->cpus.n = 0;
	return open_cpu(e, cpu, pid);
}

/* One more task of the capture: its events write into the rings that are there. */
static int attach_task(struct events *e, pid_t tid)
{
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		struct sample_cpu *c = array_push(&e->attached);
		char error[512] = "";
		int r;

		if (!c)
			return -ENOMEM;
		r = sample_open_cpu(&e->sample, &e->features, e->cpus.items[i].events.cpu, tid,
				    &e->cpus.items[i].events, c, error, sizeof(error));
		if (r < 0) {
			e->attached.n--;
			if (r != -ESRCH && r != -ENODEV)
				log_error("%s", error);
			return r;
		}
	}
	return 0;
}

static int attach_process(struct events *e, pid_t pid)
{
	char path[48];
	struct dirent *entry;
	int r = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d) {
		log_error("no process %d: it has ended or never was; see ps -e", (int)pid);
		return -ESRCH;
	}
	while ((entry = readdir(d))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0 || (e->cpus.n > 0 && tid == e->pids[0]))
			continue;
		r = attach_task(e, tid);
		if (r < 0 && r != -ESRCH)
			break;
	}
	(void)closedir(d);
	return r == -ESRCH ? 0 : r;
}

int events_open(struct events *e)
{
	pid_t first = e->n_pids > 0 ? e->pids[0] : -1;
	_cleanup_free_ int *online = calloc(EVENTS_MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, EVENTS_MAX_CPUS) : -ENOMEM, r = 0;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		r = open_cpu(e, online[i], first);
		if (r == 0 && e->cpus.n == 1)
			r = share_quota(e, n, online[i], first);
		if (r < 0 && r != -ENODEV)
			break;
	}
	if (r == -ESRCH)
		log_error("no process %d: it has ended or never was; see ps -e", (int)first);
	if (r < 0 && r != -ENODEV)
		return r;
	if (e->cpus.n == 0)
		return -ENODEV;
	for (size_t i = 0; i < e->n_pids && !e->sample.enable_on_exec; i++) {
		r = attach_process(e, e->pids[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

void events_close(struct events *e)
{
	for (uint32_t i = 0; i < e->attached.n; i++)
		sample_close_cpu(&e->attached.items[i]);
	for (uint32_t i = 0; i < e->cpus.n; i++)
		close_cpu(&e->cpus.items[i]);
	array_clear(&e->attached);
	array_clear(&e->cpus);
}

int events_enable(const struct events *e)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = sample_enable_cpu(&e->cpus.items[i].events, true);
	for (uint32_t i = 0; i < e->attached.n && r == 0; i++)
		r = sample_enable_cpu(&e->attached.items[i], true);
	return r;
}

struct cpu_events *events_add_cpu(struct events *e, int cpu)
{
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		if (e->cpus.items[i].events.cpu == cpu)
			return NULL;
	}
	return open_cpu(e, cpu, -1) < 0 ? NULL : &e->cpus.items[e->cpus.n - 1];
}

void events_remove_cpu(struct events *e, uint32_t i)
{
	close_cpu(&e->cpus.items[i]);
	e->cpus.items[i] = e->cpus.items[--e->cpus.n];
}

/*
 * An event of a CPU that went away and came back is dead and says nothing of it (every kernel
 * measured, 3.10 to 7.2). A CPU that was offline at one look gets new events at its return. One
 * that went and came between two looks, or while the whole machine was suspended, is found by the
 * time its events have counted, which stands still from then on.
 */
bool events_died(struct cpu_events *c)
{
	uint64_t before = c->enabled_ns;

	if (sample_enabled_ns(&c->events, &c->enabled_ns) < 0)
		return false;
	return before > 0 && c->enabled_ns == before;
}
