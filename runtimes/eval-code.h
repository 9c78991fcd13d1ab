/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The code of an interpreter's evaluation function. */
#include <stdio.h>

#include "runtimes/image.h"

enum { EVAL_MAX_RANGES = 4 };

/* Runtime addresses [start, end) of the function, and of parts that the compiler put elsewhere. */
struct eval_code {
	uint64_t ranges[EVAL_MAX_RANGES][2];
	uint32_t n;
};

/* Finds all ranges of the function that is at [start, end); start 0: there is none. */
void eval_code_find(struct eval_code *ret, const struct image *image, uint64_t start, uint64_t end);

/* Prints the ranges as offsets in the image, for people. */
void eval_code_explain(const struct eval_code *e, const struct image *image, FILE *out);

/* Range i; false: there are fewer. */
static inline bool eval_code_range(const struct eval_code *e, size_t i, uint64_t *ret_start,
				   uint64_t *ret_end)
{
	if (i >= e->n)
		return false;
	*ret_start = e->ranges[i][0];
	*ret_end = e->ranges[i][1];
	return true;
}
