/* SPDX-License-Identifier: Apache-2.0 */
#include "src/broker/event-budget.h"
#include "util/clock.h"
#include "util/log.h"

#define TELL_SECONDS 60

/* Each of several cgroups, and each place of a probe, has an event of its own. They share the
 * budget. */
static uint32_t budget_of_each(const struct events *e)
{
	uint32_t n = e->targets.n_cgroups > 1 ? (uint32_t)e->targets.n_cgroups : 1;

	n *= sample_event_sites(&e->sample.event);
	return e->budget > n ? e->budget / n : 1;
}

int event_budget_grant(const struct events *e, struct sample_cpu *c)
{
	return sample_grant_cpu(c, e->sample.period, budget_of_each(e));
}

static void count_standstill(struct events *e, struct cpu_events *c, bool used_up)
{
	uint64_t now = clock_monotonic_ns(), enabled = 0, passed;

	if (sample_enabled_ns(&c->events, &enabled) < 0)
		return;
	passed = enabled - c->enabled_ns;
	if (used_up && c->refilled_ns && now - c->refilled_ns > passed) {
		e->stood_still_ns += now - c->refilled_ns - passed;
		if (log_ratelimit(&e->used_up, TELL_SECONDS))
			log_warning("%s has used up its budget of %u samples a second on CPU %d, "
				    "and stood still for %llu ms: %s lets it see all of the time",
				    e->sample.event.name, e->budget, c->events.cpu,
				    (unsigned long long)((now - c->refilled_ns - passed) /
							 NSEC_PER_MSEC),
				    e->sample.use == SAMPLE_USE_EVENT
					    ? "a larger period, a filter or a larger budget"
					    : "a larger PERFWALK_ALLOC_BYTES of the programs or a "
					      "larger budget in [alloc]");
	}
	c->refilled_ns = now;
	c->enabled_ns = enabled;
}

static int refill(struct events *e, struct cpu_events *c)
{
	int r = event_budget_grant(e, &c->events);

	/* Stacks of blocks are examples; the times are those of all. */
	if (r >= 0 && !sample_use_is_switches(e->sample.use))
		count_standstill(e, c, r > 0);
	return r < 0 ? r : 0;
}

/* cpu: theirs alone; -1: all. */
static int refill_attached(struct events *e, int cpu)
{
	int r = 0;

	for (uint32_t i = 0; i < e->attached.n && r >= 0; i++) {
		struct sample_cpu *c = &e->attached.items[i];

		if (cpu < 0 || c->cpu == cpu)
			r = event_budget_grant(e, c);
	}
	return r < 0 ? r : 0;
}

int event_budget_refill(struct events *e)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = refill(e, &e->cpus.items[i]);
	return r < 0 ? r : refill_attached(e, -1);
}

int event_budget_refill_cpu(struct events *e, struct cpu_events *c)
{
	int r = refill(e, c);

	return r < 0 ? r : refill_attached(e, c->events.cpu);
}
