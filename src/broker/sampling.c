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

/* stack_size = auto: only where each CPU has one event can it be replaced. */
static uint32_t first_stack_bytes(struct tree *t)
{
	const struct config *c = t->options.config;
	uint32_t max = stack_size_max(c->ring_size_bytes, t->options.rate_hz);

	t->adapt_stack_size = !c->stack_size_bytes && !t->options.period &&
			      t->events.targets.n_pids == 0 && t->events.targets.n_cgroups <= 1;
	if (c->stack_size_bytes)
		return c->stack_size_bytes;
	if (!t->adapt_stack_size)
		return FIXED_STACK;
	return max < STACK_SIZE_FIRST ? max : STACK_SIZE_FIRST;
}

int tree_open_events(struct tree *t)
{
	const struct tree_options *o = &t->options;
	int r = tree_find_targets(t);
	const struct sample_options want = {
		.event = o->event,
		.period = o->period,
		.rate_hz = o->rate_hz,
		.stacks = o->stacks,
		.only_user = o->only_user,
		.only_kernel = o->only_kernel,
		.stack_bytes = first_stack_bytes(t),
		.regs_mask = sample_user_regs,
		.kernel_stacks = o->config->kernel_stacks,
		.ring_bytes = o->config->ring_size_bytes,
		.sideband_bytes = SIDEBAND_BYTES,
		.enable_on_exec = o->enable_on_exec,
	};

	if (r == 0)
		r = events_probe(&t->events, &want);
	return r < 0 ? r : events_open(&t->events);
}

int tree_enable(struct tree *t)
{
	t->enabled = true;
	return t->options.enable_on_exec || t->paused ? 0 : events_enable(&t->events, true);
}

/* What the profiler asks for is checked: it is not trusted with more of the host than it has. */
void tree_resize_stacks(struct tree *t, uint32_t bytes)
{
	struct message m = {.type = MESSAGE_STACK_SIZE};
	const struct sample_options *o = &t->events.sample;
	uint64_t now = clock_monotonic_ns();

	if (t->adapt_stack_size && !t->stopping && !t->reopen && bytes % 8 == 0 &&
	    bytes >= MIN_STACK_BYTES && bytes <= stack_size_max(o->ring_bytes, o->rate_hz) &&
	    now - t->resized_ns >= MIN_RESIZE_NS &&
	    events_resize_stacks(&t->events, bytes, t->enabled && !t->paused) == 0) {
		t->resized_ns = now;
		for (uint32_t i = 0; i < t->events.cpus.n; i++)
			(void)tree_send_event(t, &t->events.cpus.items[i]);
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

static void remove_cpu(struct tree *t, uint32_t i)
{
	struct message m = {.type = MESSAGE_CPU_REMOVE};

	m.cpu.cpu = t->events.cpus.items[i].events.cpu;
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
	events_remove_cpu(&t->events, i);
}

static void add_cpu(struct tree *t, int cpu)
{
	/* In this order: the profiler doubts what it knows until it hears of the CPU. */
	struct cpu_events *c = events_add_cpu(&t->events, cpu, t->enabled && !t->paused);

	if (!c)
		return;
	log_info("CPU %d came online", cpu);
	(void)tree_send_cpu(t, c, true);
}

void tree_follow_hotplug(void *ctx)
{
	struct tree *t = ctx;
	_cleanup_free_ int *online = calloc(EVENTS_MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, EVENTS_MAX_CPUS) : -1;

	if (n <= 0 || t->options.input_path || t->stopping || t->reopen)
		return;
	/* Events of tasks sleep while their CPU is offline, and go on when it is back. */
	for (uint32_t i = t->options.n_pids > 0 ? 0 : t->events.cpus.n; i-- > 0;) {
		struct cpu_events *c = &t->events.cpus.items[i];

		if (!contains(online, n, c->events.cpu))
			log_info("CPU %d went offline", c->events.cpu);
		else if (t->enabled && !t->paused && events_died(c))
			log_info("CPU %d was offline for a moment", c->events.cpu);
		else
			continue;
		remove_cpu(t, i);
	}
	for (int i = 0; i < n; i++)
		add_cpu(t, online[i]);
}
