/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Limits work to a share of the wall clock if others decide its cost: an attacker can make a table
 * long, for example. If one piece of work takes too long, the next ones wait. A limit on the number
 * of pieces would not help, because the attacker decides how much each costs.
 */
#include <stdbool.h>
#include <stdint.h>

struct time_share {
	uint32_t percent; /* of the wall clock */
	uint64_t save_ns; /* the share of this much time can be saved up; 0: 10 s */
	bool only_cpu;	  /* the cost is the CPU time from begin to end alone */
	uint64_t last_ns; /* 0: no work yet */
	int64_t credit_ns;
	uint64_t begin_wall_ns, begin_cpu_ns; /* of the current work */
};

/* Begins work if some of the share is left; false: it has to wait. now_ns: always of the same
 * clock, CLOCK_MONOTONIC except in tests. */
bool time_share_begin(struct time_share *s, uint64_t now_ns);
void time_share_end(struct time_share *s, uint64_t now_ns);
/* The same if it is known that so much of the time was really for the work. */
void time_share_end_with(struct time_share *s, uint64_t now_ns, uint64_t full_ns);
