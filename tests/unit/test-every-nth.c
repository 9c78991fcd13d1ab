/* SPDX-License-Identifier: Apache-2.0 */
/* Each thirteenth event of a model host is taken: how far the sums are off, over many hosts, is
 * what the module says of them. The hosts differ in the order of their events alone. */
#include "src/profiler/every-nth.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/test.h"

enum { PERIOD = 13, EVENTS = 13000, HOSTS = 2000 };

struct population {
	const char *name;
	double huge; /* share of events with 512 times the value */
	double mine; /* share of events that the sum is of */
};

static uint64_t seed = 88172645463325252u;

static double random_share(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) * 0x1p-53;
}

/* The square of what the sum is off by; what is expected of it is added to ret_expected. */
static double error_of(const struct population *p, double *ret_expected)
{
	struct every_nth e = {0};
	double truth = 0, told = 0;

	for (int i = 1; i <= EVENTS; i++) {
		double value = random_share() >= p->mine ? 0 : random_share() < p->huge ? 512 : 1;

		truth += value;
		if (i % PERIOD == 0) {
			told += PERIOD * value;
			every_nth_take(&e, PERIOD * value);
		}
	}
	*ret_expected += every_nth_end_window(&e, PERIOD);
	return (told - truth) * (told - truth);
}

static void test_errors_are_those_of_a_model(void)
{
	static const struct population populations[] = {
		{"alike", 0, 1},
		{"a tenth is of the program", 0, 0.1},
		{"one in 50 is huge", 0.02, 1},
		{"half are huge, a third is of the program", 0.5, 0.3},
	};

	for (size_t i = 0; i < sizeof(populations) / sizeof(populations[0]); i++) {
		double squares = 0, expected = 0;

		for (int k = 0; k < HOSTS; k++)
			squares += error_of(&populations[i], &expected);
		printf("%s: off by %.1f, expected %.1f\n", populations[i].name,
		       sqrt(squares / HOSTS), sqrt(expected / HOSTS));
		/* A variance of 2,000 draws is within 15% but for one in a million. */
		CHECK(fabs(squares - expected) <= 0.15 * squares);
	}
}

static void test_too_little_says_nothing(void)
{
	struct every_nth e = {0};

	every_nth_take(&e, 13);
	CHECK(every_nth_end_window(&e, PERIOD) == 0);
	for (int i = 0; i < 100; i++)
		every_nth_take(&e, 1 + i);
	CHECK(every_nth_end_window(&e, 1) == 0); /* each one was taken */
}

static void test_what_no_sample_stands_for(void)
{
	struct every_nth e = {0};

	for (int i = 0; i < 10; i++)
		every_nth_take(&e, PERIOD);
	CHECK_INT(every_nth_missed(&e, PERIOD, 137), ==, 7);
	CHECK_INT(every_nth_missed(&e, PERIOD, 137), ==, 0);
	CHECK_INT(every_nth_missed(&e, PERIOD, 140), ==, 3);
	/* A window that ends changes nothing of it, nor does a task whose next sample comes. */
	(void)every_nth_end_window(&e, PERIOD);
	every_nth_take(&e, PERIOD);
	CHECK_INT(every_nth_missed(&e, PERIOD, 145), ==, 0);
	CHECK_INT(every_nth_missed(&e, PERIOD, 160), ==, 160 - 11 * PERIOD - 10);
	e.taken += 2; /* these were lost */
	CHECK_INT(every_nth_missed(&e, PERIOD, 180), ==, 0);
	every_nth_take(&e, 0);
	CHECK_INT(every_nth_missed(&e, PERIOD, 100000), ==, 0);
	e = (struct every_nth){.taken = UINT64_MAX};
	CHECK_INT(every_nth_missed(&e, PERIOD, UINT64_MAX), ==, 0);
}

int main(void)
{
	RUN(test_errors_are_those_of_a_model);
	RUN(test_too_little_says_nothing);
	RUN(test_what_no_sample_stands_for);
	return 0;
}
