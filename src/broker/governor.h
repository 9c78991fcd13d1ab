/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How far perfwalk reduces its quality to stay within a limit of CPU time: a number of steps,
 * decided from the cost of each window of time. Pure: the caller defines windows and steps.
 *
 * - One step down when the last windows together cost more than the limit. Each counts as at most
 *   three times the limit, so one expensive window (a stall of the machine, the start of a large
 *   program) is not enough.
 * - One step up after several windows in a row that cost less than 40% of the limit: a step of the
 *   rate doubles the cost.
 * - After a step it waits for the effect: it decides from new windows only, without the first.
 * - If a step up must soon be taken back, the next one needs twice as many calm windows, so under a
 *   steady load the quality changes less and less often.
 */
#include <stdbool.h>
#include <stdint.h>

#define GOVERNOR_WINDOWS    6
#define GOVERNOR_FIRST_CALM 3
#define GOVERNOR_MAX_CALM   1024

/* Starts as zeros. */
struct governor {
	uint32_t step;
	uint32_t costs[GOVERNOR_WINDOWS]; /* of the last windows */
	uint32_t n;			  /* windows since the last step */
	uint32_t calm;			  /* calm windows in a row */
	uint32_t calm_doubled;		  /* how often the number that is needed was doubled */
	uint32_t since_up;		  /* windows since the last step up; 0: none yet */
};

/*
 * Call it at the end of each window, with its cost. cost and limit have the same unit; limit is 1
 * .. UINT32_MAX / 3. n_steps: how many steps there are now. Returns the step from now on, 0 ..
 * n_steps.
 */
uint32_t governor_decide(struct governor *g, uint32_t cost, uint32_t limit, uint32_t n_steps);

/*
 * For work that can be done half of the time, a quarter of it and so on, whose cost is known at
 * each look: its time is halved at once as often as needed, and once less after HALVING_CALM looks
 * in a row that allow it.
 */
#define HALVING_CALM 10
struct halving {
	uint32_t times; /* how often the time is halved */
	uint32_t calm;	/* looks in a row that allow one less; both start as 0 */
};
/* cost: of work all the time, in the unit of limit. Returns times from now on, at most max. */
uint32_t halving_decide(struct halving *h, uint64_t cost, uint64_t limit, uint32_t max);

/*
 * How many records a second there are, of which some are lost. The kernel tells of these late, and
 * all at once: they count as if they had come evenly since it told of others.
 */
struct record_rate {
	uint64_t n, n_lost; /* at the last look */
	uint64_t looked_ns, lost_ns;
};
void record_rate_begin(struct record_rate *r, uint64_t n, uint64_t n_lost, uint64_t now_ns);
/* n, n_lost: sums until now_ns, a steady clock. counted_ns: how long records were counted since the
 * last look; more than 0. */
uint64_t record_rate_look(struct record_rate *r, uint64_t n, uint64_t n_lost, uint64_t now_ns,
			  uint64_t counted_ns);
