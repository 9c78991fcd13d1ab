/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples added up by thread and stack: the first step of every rendering that has no timeline.
 */
#include "src/profile/profile.h"
#include "util/array.h"
#include "util/confidence.h"

struct aggregate_row {
	uint32_t thread, stack;
	int64_t value;	/* sum of the samples' values */
	int64_t n;	/* number of samples if known; below 0 if the value is */
	double squares; /* sum of the squares of the values; see struct sampling */
};

/*
 * The number of samples, for the confidence of shares. A file may have values without a number of
 * samples: then it is unknown. It may have sums of several samples with their number: then we
 * assume that the values within a sum vary as much as the sums, which is not less.
 */
struct sampling {
	bool known;
	double n_samples;
	double spread; /* variance of the value of a sample */
};

struct aggregate {
	ARRAY(struct aggregate_row) rows; /* in the order of their first sample */
	int64_t total;			  /* sum of all values */
	struct sampling sampling;
};

/*
 * 0 or -ENOMEM. ret_rows: NULL, or room for the row of each sample of p. The caller calls
 * aggregate_deinit() either way.
 */
int aggregate_build(struct aggregate *a, const struct profile *p, uint32_t *ret_rows);
void aggregate_deinit(struct aggregate *a);
