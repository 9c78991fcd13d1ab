/* SPDX-License-Identifier: Apache-2.0 */
/* Rates that are in step with the kernel's ticks. */
#include <math.h>

#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/ticks.h"

#define TICK_250 (4 * NSEC_PER_MSEC)

static void test_in_step(void)
{
	static const struct {
		uint32_t rate_hz, ticks_hz;
		bool in_step;
	} cases[] = {
		{1, 250, true},	   {5, 250, true},     {50, 250, true},	  {100, 250, true},
		{125, 250, true},  {200, 250, true},   {250, 250, true},  {500, 250, true},
		{1000, 250, true}, {19, 250, false},   {49, 250, false},  {97, 250, false},
		{99, 250, false},  {199, 250, false},  {499, 250, false}, {997, 250, false},
		{999, 250, false}, {1000, 100, false}, {100, 100, true},  {400, 100, true},
		{100, 300, true},  {250, 300, false},  {250, 1000, true}, {997, 1000, false},
		{3, 250, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fprintf(stderr, "%u Hz\n", cases[i].rate_hz);
		CHECK_INT(ticks_in_step(NSEC_PER_SEC / cases[i].rate_hz,
					NSEC_PER_SEC / cases[i].ticks_hz),
			  ==, cases[i].in_step);
	}
	CHECK(!ticks_in_step(NSEC_PER_MSEC, 0));
	CHECK(!ticks_in_step(0, NSEC_PER_MSEC));
}

static void test_rate_beside(void)
{
	static const uint32_t rates[][2] = {
		{1, 1},	    {5, 5},	{8, 7},	    {10, 9},	 {19, 19},
		{20, 19},   {99, 99},	{100, 99},  {200, 199},	 {250, 248},
		{499, 499}, {500, 496}, {997, 997}, {1000, 992}, {0, 0},
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		CHECK_INT(ticks_rate_beside(rates[i][0], TICK_250), ==, rates[i][1]);
	CHECK_INT(ticks_rate_beside(100, 0), ==, 100);
}

static void test_there_is_one(void)
{
	static const uint32_t ticks[] = {100, 250, 300, 1000};

	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		for (uint32_t hz = TICKS_LEAST_HZ; hz <= 10000; hz++) {
			uint64_t tick = NSEC_PER_SEC / ticks[i];

			CHECK(!ticks_in_step(NSEC_PER_SEC / ticks_rate_beside(hz, tick), tick));
		}
	}
}

/* What a second's samples see of a thread that runs for 1.3 ms of each tick, first at any time. */
static double seen(uint32_t rate_hz, uint64_t first_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rate_hz; i++)
		n += (first_ns + i * (NSEC_PER_SEC / rate_hz)) % TICK_250 < 1300000;
	return n / (double)rate_hz;
}

static void test_what_is_seen(void)
{
	static const uint32_t asked[] = {100, 200, 250, 500, 1000};
	const double share = 1300000. / TICK_250;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		double worst = 0, left = 0;

		for (uint64_t first = 0; first < TICK_250; first += 50000) {
			double is = seen(asked[i], first);
			double beside = seen(ticks_rate_beside(asked[i], TICK_250), first);

			worst = fmax(worst, fabs(is / share - 1));
			left = fmax(left, fabs(beside / share - 1));
		}
		fprintf(stderr, "%u Hz: off by %.3f, beside it by %.3f\n", asked[i], worst, left);
		CHECK(worst > 0.2);
		CHECK(left < 0.06);
	}
}

/* All kernels have one of these. */
static void test_this_kernel(void)
{
	uint64_t ns = ticks_ns();

	CHECK_INT(ns, >=, NSEC_PER_SEC / 1200);
	CHECK_INT(ns, <=, NSEC_PER_SEC / 24);
}

int main(void)
{
	RUN(test_in_step);
	RUN(test_rate_beside);
	RUN(test_there_is_one);
	RUN(test_what_is_seen);
	RUN(test_this_kernel);
	return 0;
}
