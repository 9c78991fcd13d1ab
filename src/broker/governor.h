/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of its quality perfwalk gives up to stay within a limit of CPU time: a number of steps,
 * decided from what each window of time has cost. Pure: what a window and a step are is the
 * caller's.
 *
 * - One step down when the last windows together have cost more than the limit. Each counts as
 *   three times the limit at most, so that one that cost anything (a stall of the machine, the
 *   start of a large program) is not enough.
 * - One step up when they have cost less than 40% of it, for some windows in a row: a step of the
 *   rate doubles the cost.
 * - After a step its effect is awaited: all windows are new ones, and the first is not counted.
 * - A step up that has to be taken back soon doubles the number of calm windows that the next one
 *   needs, so that a steady load makes the quality change less and less often.
 */
#include <stdbool.h>
#include <stdint.h>

#define GOVERNOR_WINDOWS    6
#define GOVERNOR_FIRST_CALM 3
#define GOVERNOR_MAX_CALM   1024

/* All 0 at first. */
struct governor {
	uint32_t step;
	uint32_t costs[GOVERNOR_WINDOWS], n; /* the last ones; since the last step */
	uint32_t calm, calm_doubled;	     /* windows in a row; how often that was not enough */
	uint32_t since_up;		     /* windows since the last step up; 0: none yet */
};

/*
 * A window is over that cost so much; cost and limit in the same unit, limit at most UINT32_MAX / 3
 * and not 0. n_steps: how many there are now. Returns the step from now on, 0 .. n_steps.
 */
uint32_t governor_decide(struct governor *g, uint32_t cost, uint32_t limit, uint32_t n_steps);

/*
 * What can be done half of the time, a quarter ... and whose cost is known at each look: it is
 * halved as often as it must be at once, and once less after some looks that allow it.
 */
#define HALVING_CALM 10
struct halving {
	uint32_t times, calm; /* looks in a row that allow one less; both 0 at first */
};
/* cost: of all of the time. Returns the times from now on, max at most. */
uint32_t halving_decide(struct halving *h, uint64_t cost, uint64_t limit, uint32_t max);
