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
	int64_t n;	/* samples as far as known, below 0 with the value */
	double squares; /* sum of the squares of the values; see struct sampling */
};

/*
 * How many samples there were, by which the confidence in a share is found. A file may hold values
 * without the number of samples behind them: then nothing is known. It may hold sums of several
 * samples with their number: then the spread of the values within a sum is taken to be that between
 * the sums, which is not smaller.
 */
struct sampling {
	bool known;
	double n_samples;
	double spread; /* variance of the value of a sample */
};
struct sampling profile_sampling(const struct profile *p);
/* The sum of the squares of the values that a sample of the profile adds up. */
double sampling_squares(const struct sampling *how, const struct profile *p,
			const struct profile_sample *s);

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
