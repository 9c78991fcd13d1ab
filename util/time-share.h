/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A share of the wall clock for work whose cost somebody else decides, such as reading a table that
 * a stranger made long. What one piece of work takes too much, the next ones wait for. A count of
 * pieces would not do: it would be the stranger who says what it stands for.
 */
#include <stdbool.h>
#include <stdint.h>

struct time_share {
	uint32_t percent; /* of the wall clock */
	uint64_t save_ns; /* what this much of it gives can be saved up; 0: 10 s */
	uint64_t last_ns; /* 0: nothing was done yet */
	int64_t credit_ns;
	uint64_t begin_wall_ns, begin_cpu_ns; /* of the work under way */
};

/* Begins work when something is left of the share; false: it has to wait. now_ns: of one clock,
 * CLOCK_MONOTONIC but for tests. */
bool time_share_begin(struct time_share *s, uint64_t now_ns);
void time_share_end(struct time_share *s, uint64_t now_ns);
