/* SPDX-License-Identifier: Apache-2.0 */
/* The tree's events: opened for what the options say, enabled, made anew for stack copies of another
 * size, and followed through CPU hotplug. */
#include <errno.h>
#include <stdlib.h>

#include "src/broker/internal.h"
#include "src/sample/stack-size.h"
#include "util/clock.h"
#include "util/log.h"

#define SIDEBAND_BYTES (UINT64_C(256) << 10)
/* Of what the profiler may ask for. */
#define MIN_STACK_BYTES 1024
#define MIN_RESIZE_NS	(500 * NSEC_PER_MSEC)
#define FIXED_STACK	(32u << 10) /* where the size cannot be adapted */

/* Only where each CPU has one event can it be replaced. */
static bool can_adapt(const struct tree *t, const struct events_targets *targets)
{
	return !t->options.config->stack_size_bytes && t->options.n_events == 1 &&
	       !t->options.events[0].stack_bytes && !t->options.events[0].period &&
	       targets->n_pids == 0 && targets->n_cgroups <= 1;
}

static uint32_t first_stack_bytes(const struct tree *t, const struct tree_event *e)
{
	const struct config *c = t->options.config;
	uint32_t max = stack_size_max(c->ring_size_bytes, e->rate_hz);

	if (e->stack_bytes)
		return e->stack_bytes;
	if (c->stack_size_bytes)
		return c->stack_size_bytes;
	if (!t->adapt_stack_size)
		return FIXED_STACK;
	return max < STACK_SIZE_FIRST ? max : STACK_SIZE_FIRST;
}

static int probe_one(struct tree *t, uint32_t index, const struct events_targets *targets)
{
	const struct tree_options *o = &t->options;
	const struct tree_event *e = &o->events[index];
	const struct sample_options want = {
		.event = e->event,
		.index = index,
		.period = e->period,
		.rate_hz = e->rate_hz,
		.stacks = o->stacks,
		.only_user = o->only_user,
		.only_kernel = o->only_kernel,
		.stack_bytes = first_stack_bytes(t, e),
		.regs_mask = sample_user_regs,
		.kernel_stacks = o->config->kernel_stacks,
		.ring_bytes = e->ring_bytes ? e->ring_bytes : o->config->ring_size_bytes,
		.sideband_bytes = SIDEBAND_BYTES,
		.enable_on_exec = o->enable_on_exec,
	};

	t->events[index].targets = *targets;
	return events_probe(&t->events[index], &want);
}

int tree_open_events(struct tree *t)
{
	struct events_targets targets = {0};
	int r = tree_find_targets(t, &targets);

	t->adapt_stack_size = can_adapt(t, &targets);
	for (uint32_t i = 0; i < t->options.n_events && r == 0; i++)
		r = probe_one(t, i, &targets);
	return r < 0 ? r : events_open(t->events, t->options.n_events);
}

void tree_close_events(struct tree *t)
{
	for (uint32_t i = 0; i < t->options.n_events; i++)
		events_close(&t->events[i]);
}

/* The first one brings the side band, which explains the samples of all: first on, last off. */
int tree_enable_events(struct tree *t, bool enable)
{
	uint32_t n = t->options.n_events;
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = events_enable(&t->events[enable ? i : n - 1 - i], enable);
	return r;
}

int tree_enable(struct tree *t)
{
	t->enabled = true;
	return t->options.enable_on_exec || t->paused ? 0 : tree_enable_events(t, true);
}

/* What the profiler asks for is checked: it is not trusted with more of the host than it has. */
void tree_resize_stacks(struct tree *t, uint32_t bytes)
{
	struct message m = {.type = MESSAGE_STACK_SIZE};
	struct events *e = &t->events[0];
	const struct sample_options *o = &e->sample;
	uint64_t now = clock_monotonic_ns();

	if (t->adapt_stack_size && !t->stopping && !t->reopen && bytes % 8 == 0 &&
	    bytes >= MIN_STACK_BYTES && bytes <= stack_size_max(o->ring_bytes, o->rate_hz) &&
	    now - t->resized_ns >= MIN_RESIZE_NS &&
	    events_resize_stacks(e, bytes, t->enabled && !t->paused) == 0) {
		t->resized_ns = now;
		for (uint32_t i = 0; i < e->cpus.n; i++)
			(void)tree_send_event(t, &e->cpus.items[i]);
	}
	m.stack_size.bytes = o->stack_bytes;
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
}

/* ---- Hotplug ---- */

static bool contains(const int *list, int n, int cpu)
{
	for (int i = 0; i < n; i++) {
		if (list[i] == cpu)
			return true;
	}
	return false;
}

static void remove_cpu(struct tree *t, int cpu)
{
	struct message m = {.type = MESSAGE_CPU_REMOVE};

	m.cpu.cpu = cpu;
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
	for (uint32_t i = 0; i < t->options.n_events; i++)
		events_remove_cpu(&t->events[i], cpu);
}

static void add_cpu(struct tree *t, int cpu)
{
	for (uint32_t i = 0; i < t->options.n_events; i++) {
		/* In this order: the profiler doubts what it knows until it hears of the CPU. */
		struct cpu_events *c = events_add_cpu(&t->events[i], cpu, t->enabled && !t->paused);

		if (!c)
			return;
		if (i == 0)
			log_info("CPU %d came online", cpu);
		(void)tree_send_cpu(t, c, true);
	}
}

void tree_follow_hotplug(void *ctx)
{
	struct tree *t = ctx;
	struct events *e = &t->events[0];
	_cleanup_free_ int *online = calloc(EVENTS_MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, EVENTS_MAX_CPUS) : -1;

	if (n <= 0 || t->options.input_path || t->stopping || t->reopen)
		return;
	/* Events of tasks sleep while their CPU is offline, and go on when it is back. */
	for (uint32_t i = t->options.n_pids > 0 ? 0 : e->cpus.n; i-- > 0;) {
		struct cpu_events *c = &e->cpus.items[i];

		if (!contains(online, n, c->events.cpu))
			log_info("CPU %d went offline", c->events.cpu);
		else if (t->enabled && !t->paused && events_died(c))
			log_info("CPU %d was offline for a moment", c->events.cpu);
		else
			continue;
		remove_cpu(t, c->events.cpu);
	}
	for (int i = 0; i < n; i++)
		add_cpu(t, online[i]);
}
