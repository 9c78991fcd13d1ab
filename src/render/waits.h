/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sums of off-CPU time, by what threads waited for. */
#include <stdint.h>

#include "src/profile/profile.h"

struct wait_sum {
	enum profile_marker marker;
	int64_t ns;
	uint64_t n; /* blocks that ended */
};

#define WAITS_MAX_REASONS PROFILE_N_MARKERS
/* Of the first type, which is off-CPU time, the most time first. Their number; none is of 0 ns. */
uint32_t waits_by_reason(const struct profile *p, struct wait_sum ret[WAITS_MAX_REASONS]);
