/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples added up by thread and stack: the first step of every rendering that has no timeline.
 */
#include "src/profile/profile.h"
#include "util/array.h"

struct aggregate_row {
	uint32_t thread, stack;
	int64_t value; /* sum of the samples' values */
	int64_t n;     /* samples as far as known, below 0 with the value */
};

struct aggregate {
	ARRAY(struct aggregate_row) rows; /* in the order of their first sample */
	int64_t total;			  /* sum of all values */
};

/*
 * 0 or -ENOMEM. ret_rows: NULL, or room for the row of each sample of p. The caller calls
 * aggregate_deinit() either way.
 */
int aggregate_build(struct aggregate *a, const struct profile *p, uint32_t *ret_rows);
void aggregate_deinit(struct aggregate *a);
