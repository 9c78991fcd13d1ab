/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the daemon's CPU time within [limits] cpu: what its processes cost is measured over windows
 * of time, the governor says how many steps of quality to do without, and this file defines the
 * steps. The kernel's work at each sample counts as the interrupted program's time, so it is not
 * measured.
 *
 * The rate changes as it does at a reload: the profiler leaves with its last window, and the events
 * are made anew. So no window has samples of two periods.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/governor.h"
#include "src/broker/internal.h"
#include "util/clock.h"
#include "util/log.h"

#define MAX_WINDOW_NS (10 * NSEC_PER_SEC) /* of a longer interval; a shorter one is a window */
#define NO_LIMIT      1000000

/* As the log says what is missing, or is there again. */
static const char *const meanings[REDUCED_N] = {
	[REDUCED_LINES] = "source lines",
	[REDUCED_INLINES] = "inlined functions",
	[REDUCED_NAMES] = "names of functions that are rarely seen",
	[REDUCED_STACKS] = "stack copies of more than 8K",
	[REDUCED_HALF] = "half of the samples",
	[REDUCED_QUARTER] = "half of the samples that were left",
	[REDUCED_EIGHTH] = "half of the samples that were left",
};

static bool can_halve(const struct broker *b, uint32_t times)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->options.events[i].period || b->options.events[i].rate_hz >> times)
			return true;
	}
	return false;
}

/* Is there anything left to reduce? */
static bool applies(const struct broker *b, enum reduction r)
{
	const struct config *c = b->options.config;

	switch (r) {
	case REDUCED_LINES:
		return c->source_lines;
	case REDUCED_INLINES:
		return c->inline_frames;
	case REDUCED_NAMES:
		return true;
	case REDUCED_STACKS:
		return b->adapt_stack_size && !b->events[0].features.frame_pointers;
	default:
		return can_halve(b, (uint32_t)r - REDUCED_HALF + 1);
	}
}

/* The first n of those that apply, as bits. */
static uint32_t first_steps(const struct broker *b, uint32_t n)
{
	uint32_t reduced = 0;

	for (uint32_t r = 0; r < REDUCED_N && n > 0; r++) {
		if (!applies(b, (enum reduction)r))
			continue;
		reduced |= REDUCED_BIT(r);
		n--;
	}
	return reduced;
}

static uint32_t count_steps(const struct broker *b)
{
	return b->options.config->cpu_ppm < NO_LIMIT
		       ? (uint32_t)__builtin_popcount(first_steps(b, REDUCED_N))
		       : 0;
}

static void tell(const struct broker *b, uint32_t before)
{
	uint32_t changed = before ^ b->budget.reduced;
	double used = b->budget.used_ppm / 1e4, limit = b->options.config->cpu_ppm / 1e4;

	for (uint32_t r = 0; r < REDUCED_N; r++) {
		if (!(changed & REDUCED_BIT(r)))
			continue;
		if (before & REDUCED_BIT(r))
			log_info("quality goes up: again with %s (CPU time is at %.2f%% of the "
				 "host; [limits] cpu is %.4g%%)",
				 meanings[r], used, limit);
		else
			log_warning("quality goes down: without %s (CPU time was at %.2f%% of the "
				    "host; [limits] cpu is %.4g%%)",
				    meanings[r], used, limit);
	}
}

static void apply(struct broker *b, uint32_t reduced)
{
	uint32_t before = b->budget.reduced, changed;

	reduced |= before & REDUCED_SWITCHES_BITS;
	changed = before ^ reduced;
	b->budget.reduced = reduced;
	if (!changed)
		return;
	tell(b, before);
	broker_tell_symbolizer_config(b);
	if (changed & REDUCED_BIT(REDUCED_STACKS))
		broker_limit_stacks(b);
}

static void begin_window(struct broker *b, uint64_t now, uint64_t cpu_ns)
{
	b->budget.at_ns = now;
	b->budget.cpu_ns = cpu_ns;
}

/* Of the whole host. */
static uint32_t share_ppm(uint64_t cpu_ns, uint64_t passed_ns)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double share = (double)cpu_ns / (double)passed_ns / (n_cpus > 0 ? (double)n_cpus : 1);

	return share < 1 ? (uint32_t)(share * 1e6) : NO_LIMIT;
}

bool broker_look_at_budget(struct broker *b)
{
	struct cpu_budget *u = &b->budget;
	uint64_t now = clock_monotonic_ns(), passed = now - u->at_ns, cpu;
	uint64_t window =
		b->options.interval_ns < MAX_WINDOW_NS ? b->options.interval_ns : MAX_WINDOW_NS;
	uint32_t before = u->reduced;

	if (!broker_is_sampling(b) || !u->at_ns) {
		begin_window(b, now, broker_cpu_ns(b));
		return false;
	}
	if (passed + BROKER_LOOK_NS / 2 < window)
		return false;
	cpu = broker_cpu_ns(b);
	u->used_ppm = cpu > u->cpu_ns ? share_ppm(cpu - u->cpu_ns, passed) : 0;
	begin_window(b, now, cpu);
	apply(b, first_steps(b, governor_decide(&u->governor, u->used_ppm,
						b->options.config->cpu_ppm, count_steps(b))));
	return ((before ^ u->reduced) & REDUCED_RATE_BITS) != 0;
}
