/* SPDX-License-Identifier: Apache-2.0 */
/* The governor against a model that keeps all that ever happened, and against what it promises. */
#include "src/broker/governor.h"

#include "tests/unit/test.h"
#include "util/cleanup.h"

#define LIMIT	  20000 /* 2% in millionths */
#define MAX_STEPS 7
#define LENGTH	  4000

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- The model ---- */

/* Nothing but the costs since the last step, the calm windows of late, and when steps were made. */
struct model {
	uint32_t costs[LENGTH], n, step, calm, wanted, now, up_at;
};

static uint32_t model_decide(struct model *m, uint32_t cost, uint32_t n_steps)
{
	double mean = 0;

	m->now++;
	m->costs[m->n++] = cost > 3 * LIMIT ? 3 * LIMIT : cost;
	for (uint32_t i = 0; m->n > 6 && i < 6; i++)
		mean += m->costs[m->n - 1 - i] / 6.0;
	if (m->n <= 6) /* the first does not count */
		return m->step;
	m->calm = mean < 0.4 * LIMIT ? m->calm + 1 : 0;
	if (mean > LIMIT && m->step < n_steps) {
		bool soon = m->up_at && m->now - m->up_at < 2 * m->wanted + 6;

		m->wanted = !soon ? 3 : m->wanted * 2 <= 1024 ? m->wanted * 2 : m->wanted;
		m->up_at = m->n = m->calm = 0;
		m->step++;
	} else if (m->calm >= m->wanted && m->step > 0) {
		m->up_at = m->now;
		m->n = m->calm = 0;
		m->step--;
	}
	return m->step;
}

/* Costs as they come: quiet, busy and wild stretches. */
static uint32_t some_cost(uint32_t *kind)
{
	if (draw(40) == 0)
		*kind = draw(4);
	switch (*kind) {
	case 0:
		return draw(LIMIT / 3);
	case 1:
		return LIMIT / 4 + draw(LIMIT);
	case 2:
		return LIMIT + draw(LIMIT / 2);
	default:
		return draw(4) ? draw(LIMIT) : draw(1000000);
	}
}

static void test_model(void)
{
	uint32_t n_down = 0, n_up = 0;

	for (uint64_t round = 1; round <= 300; round++) {
		struct governor g = {.step = 0};
		struct model m = {.wanted = 3};
		uint32_t kind = 0, n_steps = draw(MAX_STEPS + 1), before = 0;

		seed = round;
		for (int i = 0; i < LENGTH; i++) {
			uint32_t cost = some_cost(&kind);
			uint32_t step = governor_decide(&g, cost, LIMIT, n_steps);

			CHECK_INT(step, ==, model_decide(&m, cost, n_steps));
			CHECK_INT(step, <=, n_steps);
			n_down += step > before;
			n_up += step < before;
			before = step;
		}
	}
	CHECK_INT(n_down, >, 1000);
	CHECK_INT(n_up, >, 1000);
}

/* ---- What it promises ---- */

static void test_stall(void)
{
	struct governor g = {.step = 0};

	for (int i = 0; i < 1000; i++) {
		uint32_t cost = i % 10 == 5 ? 1000000 : LIMIT / 3;

		CHECK_INT(governor_decide(&g, cost, LIMIT, MAX_STEPS), ==, 0);
	}
}

static void test_a_little_too_much(void)
{
	struct governor g = {.step = 0};
	int i;

	for (i = 0; i < 8 && g.step == 0; i++)
		(void)governor_decide(&g, LIMIT + 1, LIMIT, MAX_STEPS);
	CHECK_INT(g.step, ==, 1);
	for (i = 0; i < 1000; i++)
		CHECK_INT(governor_decide(&g, LIMIT, LIMIT, MAX_STEPS), ==, 1);
}

/* What a load costs at each step, with no step at which the governor would be content. */
static void test_steady(void)
{
	struct governor g = {.step = 0};
	uint32_t n = 0, before = 0;

	for (int i = 0; i < 100000; i++) {
		uint32_t step =
			governor_decide(&g, g.step >= 3 ? LIMIT / 5 : 2 * LIMIT, LIMIT, MAX_STEPS);

		n += step != before;
		before = step;
		CHECK_INT(step, <=, 3);
	}
	printf("%u steps in 100000 windows\n", n);
	CHECK_INT(n, <, 300);
}

static void test_there_and_back(void)
{
	struct governor g = {.step = 0};

	for (int i = 0; i < 100; i++)
		(void)governor_decide(&g, 1000000, LIMIT, MAX_STEPS);
	CHECK_INT(g.step, ==, MAX_STEPS);
	for (int i = 0; i < 100; i++)
		(void)governor_decide(&g, LIMIT / 4, LIMIT, MAX_STEPS);
	CHECK_INT(g.step, ==, 0);
}

/* A reload leaves fewer. */
static void test_fewer_steps(void)
{
	struct governor g = {.step = 5};

	CHECK_INT(governor_decide(&g, LIMIT, LIMIT, 2), ==, 2);
	CHECK_INT(governor_decide(&g, LIMIT, LIMIT, 0), ==, 0);
}

/* Down at once, as far as it must; up one by one, each after a while. */
static void test_halving(void)
{
	struct halving h = {.times = 0};
	int looks = 0;

	CHECK_INT(halving_decide(&h, LIMIT, LIMIT, 6), ==, 0);
	CHECK_INT(halving_decide(&h, 5 * LIMIT, LIMIT, 6), ==, 3);
	CHECK_INT(halving_decide(&h, 1000 * LIMIT, LIMIT, 6), ==, 6);
	for (uint32_t times = 6; times > 1; looks++) {
		uint32_t now = halving_decide(&h, 2 * LIMIT, LIMIT, 6);

		CHECK(now == times || now + 1 == times);
		times = now;
	}
	CHECK_INT(looks, ==, 5 * HALVING_CALM);
	for (int i = 1; i < HALVING_CALM; i++)
		CHECK_INT(halving_decide(&h, LIMIT, LIMIT, 6), ==, 1);
	CHECK_INT(halving_decide(&h, 2 * LIMIT, LIMIT, 6), ==, 1);
	CHECK_INT(halving_decide(&h, LIMIT, LIMIT, 6), ==, 1);
}

/* 1,000 records a second, of which a tenth are lost; that is told every so many looks. */
static void test_rate(void)
{
	for (uint64_t every = 1; every <= 10; every++) {
		struct record_rate r;

		record_rate_begin(&r, 500, 50, 1000);
		for (uint64_t i = 1; i <= 100; i++) {
			uint64_t now_ns = 1000 + i * 1000000000;
			uint64_t told =
				record_rate_look(&r, 500 + 900 * i, 50 + 100 * (i / every * every),
						 now_ns, 1000000000);

			CHECK_INT(told, >=, 900);
			CHECK_INT(told, <=, 1001);
			CHECK(i % every != 0 || told >= 999);
		}
	}
}

/* Counted in a quarter of the time, records and losses alike. */
static void test_rate_in_turns(void)
{
	struct record_rate r;

	record_rate_begin(&r, 0, 0, 0);
	for (uint64_t i = 1; i <= 10; i++) {
		uint64_t told =
			record_rate_look(&r, 200 * i, 50 * (i / 5 * 5), i * 1000000000, 250000000);

		CHECK_INT(told, >=, 799);
		CHECK_INT(told, <=, 1001);
	}
}

int main(void)
{
	RUN(test_model);
	RUN(test_stall);
	RUN(test_a_little_too_much);
	RUN(test_steady);
	RUN(test_there_and_back);
	RUN(test_fewer_steps);
	RUN(test_halving);
	RUN(test_rate);
	RUN(test_rate_in_turns);
	return 0;
}
