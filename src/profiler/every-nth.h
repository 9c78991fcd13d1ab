/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples of which each stands for N events: how far their sum may be off, and the events for which
 * none stands.
 *
 * The kernel takes each Nth event, so it is known how many events there were: the sum is off only
 * as far as their values differ, as that of a random choice of so many. The samples of others that
 * were taken in between count with a value of 0, since how many of those there are is chance, too.
 */
#include <stdint.h>

struct every_nth {
	uint64_t n; /* samples of the window, those of others included */
	double sum, squares;
	uint64_t taken;	   /* samples since the beginning, lost ones included */
	uint64_t filtered; /* of others, since the beginning */
	uint64_t told;	   /* by every_nth_missed() */
};

/* value: of all events for which the sample stands. */
static inline void every_nth_take(struct every_nth *e, double value)
{
	e->n++;
	e->taken++;
	e->filtered += value <= 0;
	e->sum += value;
	e->squares += value * value;
}

/* The variance of the sum of the window's values, in squares of their unit. The next window begins.
 */
double every_nth_end_window(struct every_nth *e, uint64_t period);
/* How many of the events that the kernel has counted since the beginning have no sample that stands
 * for them, beyond those that were told before. Whose these are is not known, so there are none
 * once samples of others were left out. */
uint64_t every_nth_missed(struct every_nth *e, uint64_t period, uint64_t counted);
