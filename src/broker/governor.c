/* SPDX-License-Identifier: Apache-2.0 */
#include "src/broker/governor.h"

#define MOST_OF_ONE 3 /* limits */
#define CALM_SHARE  2 / 5

static uint32_t calm_wanted(const struct governor *g)
{
	return GOVERNOR_FIRST_CALM << g->calm_doubled;
}

static void begin_step(struct governor *g, uint32_t step)
{
	g->step = step;
	g->n = g->calm = 0;
}

static void step_down(struct governor *g)
{
	bool soon = g->since_up && g->since_up <= 2 * calm_wanted(g) + GOVERNOR_WINDOWS;

	if (!soon)
		g->calm_doubled = 0;
	else if (2 * calm_wanted(g) <= GOVERNOR_MAX_CALM)
		g->calm_doubled++;
	g->since_up = 0;
	begin_step(g, g->step + 1);
}

static void step_up(struct governor *g)
{
	begin_step(g, g->step - 1);
	g->since_up = 1;
}

uint32_t governor_decide(struct governor *g, uint32_t cost, uint32_t limit, uint32_t n_steps)
{
	uint64_t sum = 0;

	if (g->step > n_steps)
		begin_step(g, n_steps);
	g->since_up += g->since_up > 0 && g->since_up < UINT32_MAX;
	g->n++;
	if (g->n == 1)
		return g->step;
	g->costs[g->n % GOVERNOR_WINDOWS] = cost < MOST_OF_ONE * limit ? cost : MOST_OF_ONE * limit;
	if (g->n <= GOVERNOR_WINDOWS)
		return g->step;
	for (int i = 0; i < GOVERNOR_WINDOWS; i++)
		sum += g->costs[i];
	if (sum > (uint64_t)GOVERNOR_WINDOWS * limit) {
		g->calm = 0;
		if (g->step < n_steps)
			step_down(g);
		return g->step;
	}
	g->calm = sum < (uint64_t)GOVERNOR_WINDOWS * limit * CALM_SHARE ? g->calm + 1 : 0;
	if (g->calm >= calm_wanted(g) && g->step > 0)
		step_up(g);
	return g->step;
}

uint32_t halving_decide(struct halving *h, uint64_t cost, uint64_t limit, uint32_t max)
{
	uint32_t times = 0;

	while (times < max && cost >> times > limit)
		times++;
	h->calm = times < h->times ? h->calm + 1 : 0;
	if (times > h->times)
		h->times = times;
	if (h->calm < HALVING_CALM)
		return h->times;
	h->calm = 0;
	return --h->times;
}

void record_rate_begin(struct record_rate *r, uint64_t n, uint64_t n_lost, uint64_t now_ns)
{
	*r = (struct record_rate){n, n_lost, now_ns, now_ns};
}

uint64_t record_rate_look(struct record_rate *r, uint64_t n, uint64_t n_lost, uint64_t now_ns,
			  uint64_t counted_ns)
{
	uint64_t n_more = n > r->n ? n - r->n : 0;
	uint64_t n_more_lost = n_lost > r->n_lost ? n_lost - r->n_lost : 0;
	uint64_t ns = now_ns > r->looked_ns ? now_ns - r->looked_ns : 1;
	uint64_t lost_ns = now_ns > r->lost_ns ? now_ns - r->lost_ns : 1;
	double share = counted_ns < ns ? (double)counted_ns / (double)ns : 1;
	double rate = (double)n_more / (double)counted_ns +
		      (double)n_more_lost / ((double)lost_ns * share);

	r->n = n;
	r->looked_ns = now_ns;
	if (n_more_lost) {
		r->n_lost = n_lost;
		r->lost_ns = now_ns;
	}
	return (uint64_t)(rate * 1e9);
}
