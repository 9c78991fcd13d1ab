/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture begins when the interpreters that run already are known and have their readers. Else
 * the frames of its first quarter of a second would be missing: the profiler learns of a process by
 * its samples, and then readers have to start. The same of runtimes with allocators of their own,
 * which have to get their probes; for these a live view waits, too. And of what runs at the moment:
 * it may have ended when the first samples are looked at, and has no fork record to tell its name.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/broker/tasks.h"
#include "src/reader/setup.h"
#include "util/cleanup.h"
#include "util/loop.h"
#include "util/runtime-files.h"

#define LOOK_NS	     (5 * NSEC_PER_MSEC)
#define MAX_LOOKS    4096
#define MAX_WAIT_NS  (500 * NSEC_PER_MSEC)
#define MAX_LOOKS_NS (10 * NSEC_PER_SEC)

static bool is_sampling_allocations(const struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->options.events[i].use == SAMPLE_USE_PICKED)
			return true;
	}
	return false;
}

/* Programs that are worth a look, which the profiler takes then. */
static bool is_likely(const struct broker *b, pid_t pid)
{
	char path[64], target[4096];
	int n_threads;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	/* Any may have an allocator of its own. */
	return is_sampling_allocations(b) ||
	       (broker_reads_interpreters(b) && runtime_file_may_chain(target)) ||
	       tasks_state(pid, &n_threads) == 'R';
}

static void send_look(struct broker *b, pid_t pid)
{
	struct message m = {.type = MESSAGE_LOOK};

	m.client.pid = (uint32_t)pid;
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
}

static uint32_t look_at_host(struct broker *b)
{
	uint32_t max = is_sampling_allocations(b) ? MAX_LOOKS : READERS_MAX_CLIENTS;
	const struct dirent *entry;
	uint32_t n = 0;
	DIR *d;

	/* What starts from now on has its records. If that fails, so does the capture, later. */
	for (uint32_t i = 0; i < b->options.n_events; i++)
		(void)events_enable_sidebands(&b->events[i]);
	d = opendir("/proc");

	while (d && n < max && (entry = readdir(d))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !is_likely(b, pid))
			continue;
		send_look(b, pid);
		n++;
	}
	if (d)
		(void)closedir(d);
	return n;
}

static uint32_t look_at_all(struct broker *b)
{
	size_t n = b->options.n_pids;

	if (n == 0)
		return look_at_host(b);
	for (size_t i = 0; i < n && i < READERS_MAX_CLIENTS; i++)
		send_look(b, b->options.pids[i]);
	return (uint32_t)n;
}

static bool are_readers_running(const struct broker *b)
{
	const struct events *e = &b->events[0];

	for (uint32_t i = 0; i < e->cpus.n; i++) {
		struct peer_id who = {PEER_READER, (uint32_t)e->cpus.items[i].events.cpu};

		if (who.index < READERS_MAX && !supervisor_running(b->supervisor, who))
			return false;
	}
	return true;
}

static void stop_waiting(struct broker *b)
{
	loop_set_timer(b->loop, b->foresight.timer, UINT64_MAX);
	b->foresight.until_ns = 0;
	b->foresight.begin(b);
}

/* Once more after the last reader has started: it has to meet the profiler. */
static void on_look(void *ctx)
{
	struct broker *b = ctx;
	uint64_t until_ns = b->foresight.until_ns;
	bool met = b->foresight.running;

	b->foresight.running =
		b->foresight.looked && b->readers.n_clients > 0 && are_readers_running(b);
	/* Probes cannot be set later for what allocates meanwhile; readers come anyway. */
	if (is_sampling_allocations(b) && !b->foresight.looked)
		until_ns += MAX_LOOKS_NS;
	if ((met && b->foresight.running) || clock_monotonic_ns() > until_ns)
		stop_waiting(b);
}

void broker_has_looked(struct broker *b)
{
	b->foresight.looked = true;
	if (b->foresight.until_ns && b->readers.n_clients == 0)
		stop_waiting(b);
}

bool broker_foresee(struct broker *b, void (*begin)(struct broker *b))
{
	/* A live view may begin without readers: frames are missing in its first table alone. */
	bool live = b->options.screen && is_sampling_allocations(b);

	if ((!b->options.capture && !live) || b->options.input_path ||
	    (b->options.n_pids > 0 && !broker_reads_interpreters(b) &&
	     !is_sampling_allocations(b)) ||
	    look_at_all(b) == 0)
		return false;
	b->foresight.timer = loop_add_timer(b->loop, LOOK_NS, LOOK_NS, on_look, b);
	if (b->foresight.timer < 0)
		return false;
	b->foresight.begin = begin;
	b->foresight.until_ns = clock_monotonic_ns() + MAX_WAIT_NS;
	send_look(b, 0);
	return true;
}
