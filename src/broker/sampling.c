/* SPDX-License-Identifier: Apache-2.0 */
/* The tree's events: opened for what the options say, enabled, made anew for stack copies of
 * another size, and followed through CPU hotplug. */
#include <errno.h>
#include <stdlib.h>

#include "src/broker/internal.h"
#include "src/process/statistics.h"
#include "src/sample/stack-size.h"
#include "util/clock.h"
#include "util/log.h"

#define SIDEBAND_BYTES (UINT64_C(256) << 10)
/* Of what the profiler may ask for. */
#define MIN_STACK_BYTES 1024
#define MIN_RESIZE_NS	(500 * NSEC_PER_MSEC)
#define LEAST_STACK	(8u << 10)  /* where CPU time is short */
#define FIXED_STACK	(32u << 10) /* where the size cannot be adapted */

/* Only where each CPU has one event can it be replaced. */
static bool can_adapt(const struct broker *b, const struct events_targets *targets)
{
	return !b->options.config->stack_size_bytes && b->options.n_events == 1 &&
	       !b->options.events[0].stack_bytes && !b->options.events[0].period &&
	       targets->n_pids == 0 && targets->n_cgroups <= 1;
}

static bool stacks_are_limited(const struct broker *b)
{
	return b->budget.reduced & REDUCED_BIT(REDUCED_STACKS);
}

static uint32_t first_stack_bytes(const struct broker *b, const struct broker_event *e)
{
	const struct config *c = b->options.config;
	uint32_t max = stack_size_max(c->ring_size_bytes, e->rate_hz);

	if (e->stack_bytes)
		return e->stack_bytes;
	if (b->adapt_stack_size && stacks_are_limited(b))
		return LEAST_STACK;
	if (c->stack_size_bytes)
		return c->stack_size_bytes;
	if (!b->adapt_stack_size)
		return FIXED_STACK;
	return max < STACK_SIZE_FIRST ? max : STACK_SIZE_FIRST;
}

/* By the argument of the system call in which a thread blocks. */
static bool finds_locks(const struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->options.events[i].use == SAMPLE_USE_WAKEUPS)
			return true;
	}
	return false;
}

/* CPU time is then that of all threads and processes, however short they live. */
static bool wants_whole_cpus(const struct broker *b, const struct broker_event *e)
{
	return b->options.n_pids > 0 && !b->options.threads && e->use == SAMPLE_USE_EVENT &&
	       (!e->event.name[0] || sample_event_is_time(&e->event));
}

static int probe_one(struct broker *b, uint32_t index, const struct events_targets *targets)
{
	const struct broker_options *o = &b->options;
	const struct broker_event *e = &o->events[index];
	bool switches = sample_use_is_switches(e->use); /* where a thread stops is in the kernel */
	/* Times are sums over all switches; the programs themselves pick blocks at their rate. */
	uint32_t divisor = e->use == SAMPLE_USE_EVENT ? broker_rate_divisor(b) : 1;
	const struct sample_options want = {
		.event = e->event,
		.use = e->use,
		.switch_fields = e->switch_fields,
		.index = index,
		.wall = e->wall,
		.grown_after_ns = e->grown_after_ns,
		.filter = e->filter[0] ? e->filter : NULL,
		.period = e->period * divisor,
		.rate_hz = e->rate_hz > divisor ? e->rate_hz / divisor : e->rate_hz > 0,
		.stacks = o->stacks,
		.only_user = !switches && (o->only_user || e->only_user),
		.only_kernel = !switches && (o->only_kernel || e->only_kernel),
		.stack_bytes = first_stack_bytes(b, e),
		.regs_mask = e->use == SAMPLE_USE_SWITCHES ? sample_switch_regs(finds_locks(b))
							   : sample_user_regs,
		.kernel_stacks = o->config->kernel_stacks,
		.ring_bytes = e->ring_bytes ? e->ring_bytes : o->config->ring_size_bytes,
		.sideband_bytes = SIDEBAND_BYTES,
		.enable_on_exec = o->enable_on_exec,
		.whole_cpus = wants_whole_cpus(b, e),
		/* Events of tasks cannot be replaced later. */
		.wake_each = targets->n_pids > 0 && broker_reads_interpreters(b) &&
			     broker_wakes_readers(b, index),
	};

	b->events[index].targets = *targets;
	b->events[index].budget = e->period && targets->n_pids == 0 ? e->budget : 0;
	b->events[index].stood_still_ns = 0;
	return events_probe(&b->events[index], &want);
}

int broker_open_events(struct broker *b)
{
	struct events_targets targets = {0};
	int r = broker_find_targets(b, &targets);

	b->adapt_stack_size = can_adapt(b, &targets);
	for (uint32_t i = 0; i < b->options.n_events && r == 0; i++)
		r = probe_one(b, i, &targets);
	r = r < 0 ? r : events_open(b->events, b->options.n_events);
	if (r == 0)
		broker_attach_copies(b);
	return r;
}

uint32_t broker_rate_hz(const struct broker *b, uint32_t i)
{
	return b->events[i].sample.period ? 0 : b->events[i].sample.rate_hz;
}

void broker_close_events(struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++)
		events_close(&b->events[i]);
}

/* The first one brings the side band, which explains the samples of all: first on, last off. */
int broker_enable_events(struct broker *b, bool enable)
{
	uint32_t n = b->options.n_events;
	int r = 0;

	if (enable)
		broker_begin_turns(b);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = events_enable(&b->events[enable ? i : n - 1 - i], enable);
	return r;
}

static int enable_whole_cpus(struct broker *b)
{
	int r = 0;

	for (uint32_t i = 0; i < b->options.n_events && r == 0; i++)
		r = events_enable_whole_cpus(&b->events[i]);
	return r;
}

int broker_begin(struct broker *b)
{
	bool enable = !b->options.enable_on_exec && !b->paused;
	int r = enable ? broker_enable_events(b, true) : 0;

	if (b->options.enable_on_exec && !b->paused)
		r = enable_whole_cpus(b);
	if (r == 0 && enable)
		broker_tell_standing(b);
	if (r == 0 && b->options.begun)
		b->options.begun(b->options.ctx);
	return r;
}

static void resize_stacks(struct broker *b, uint32_t bytes)
{
	struct events *e = &b->events[0];

	if (!b->adapt_stack_size || b->state != BROKER_RUNNING ||
	    events_resize_stacks(e, bytes, broker_is_sampling(b)) < 0)
		return;
	b->resized_ns = clock_monotonic_ns();
	for (uint32_t i = 0; i < e->cpus.n; i++)
		(void)broker_send_event(b, &e->cpus.items[i]);
}

static void tell_stack_size(const struct broker *b)
{
	struct message m = {.type = MESSAGE_STACK_SIZE};

	m.stack_size.bytes = b->events[0].sample.stack_bytes;
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
}

/* Checks the profiler's request: it must not get more of the host than it has already. */
void broker_resize_stacks(struct broker *b, uint32_t bytes)
{
	const struct sample_options *o = &b->events[0].sample;
	uint32_t max =
		stacks_are_limited(b) ? LEAST_STACK : stack_size_max(o->ring_bytes, o->rate_hz);

	if (bytes % 8 == 0 && bytes >= MIN_STACK_BYTES && bytes <= max &&
	    clock_monotonic_ns() - b->resized_ns >= MIN_RESIZE_NS)
		resize_stacks(b, bytes);
	tell_stack_size(b);
}

void broker_limit_stacks(struct broker *b)
{
	resize_stacks(b, first_stack_bytes(b, &b->options.events[0]));
	tell_stack_size(b);
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

static void remove_cpu(struct broker *b, int cpu)
{
	struct message m = {.type = MESSAGE_CPU_REMOVE};

	m.cpu.cpu = cpu;
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	supervisor_kill(b->supervisor, (struct peer_id){PEER_READER, (uint32_t)cpu});
	for (uint32_t i = 0; i < b->options.n_events; i++)
		events_remove_cpu(&b->events[i], cpu);
}

static void add_cpu(struct broker *b, int cpu)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		/* In this order: the profiler doubts what it knows until it hears of the CPU. */
		struct cpu_events *c = events_add_cpu(&b->events[i], cpu, broker_is_sampling(b));

		if (!c)
			return;
		if (i == 0) {
			log_info("CPU %d came online", cpu);
			broker_tell_targets(b, true);
		}
		(void)broker_send_cpu(b, c, true);
	}
}

/* Blocks that ended meanwhile the profiler takes for some in use: it looks where they are. */
static void tell_stood_still(struct broker *b)
{
	const struct message m = {.type = MESSAGE_STOOD_STILL};

	(void)supervisor_try_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
}

static void refill_budgets(struct broker *b)
{
	for (uint32_t i = 0; broker_is_sampling(b) && i < b->options.n_events; i++) {
		uint64_t before = b->events[i].stood_still_ns;

		if (sample_use_is_switches(b->options.events[i].use))
			continue;
		events_refill(&b->events[i]);
		if (b->options.events[i].use == SAMPLE_USE_ENDED &&
		    b->events[i].stood_still_ns > before)
			tell_stood_still(b);
	}
}

/* Events of tasks sleep while their CPU is offline, and go on when it is back; others do not. */
static void revive_whole_cpus(struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events && broker_is_sampling(b); i++) {
		struct events *e = &b->events[i];

		for (uint32_t j = 0; j < e->cpus.n; j++) {
			if (events_revive_cpu(e, &e->cpus.items[j]))
				(void)broker_send_event(b, &e->cpus.items[j]);
		}
	}
}

static void follow_hotplug(struct broker *b)
{
	struct events *e = &b->events[0];
	_cleanup_free_ int *online = calloc(EVENTS_MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, EVENTS_MAX_CPUS) : -1;

	/* Without a profiler nobody reads the rings of a CPU that has gone: they are kept for the
	 * next one, which cannot map them once they are closed. */
	if (n <= 0 || !supervisor_running(b->supervisor, peer_only(PEER_PROFILER)) ||
	    !supervisor_status(b->supervisor, peer_only(PEER_PROFILER))->ready)
		return;
	if (b->options.n_pids > 0)
		revive_whole_cpus(b);
	for (uint32_t i = b->options.n_pids > 0 ? 0 : e->cpus.n; i-- > 0;) {
		struct cpu_events *c = &e->cpus.items[i];

		if (!contains(online, n, c->events.cpu))
			log_info("CPU %d went offline", c->events.cpu);
		else if (broker_is_sampling(b) && events_died(c))
			log_info("CPU %d was offline for a moment", c->events.cpu);
		else
			continue;
		remove_cpu(b, c->events.cpu);
	}
	for (int i = 0; i < n; i++)
		add_cpu(b, online[i]);
}

void broker_look_after_events(struct broker *b)
{
	if (b->options.input_path || b->state != BROKER_RUNNING)
		return;
	follow_hotplug(b);
	broker_look_after_copies(b);
	refill_budgets(b);
}
