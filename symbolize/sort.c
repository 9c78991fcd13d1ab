/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least-significant-digit radix sort. All histograms come from one pass; a digit that all keys
 * share costs nothing, so addresses of one module take three passes. A sorted input, as
 * kallsyms nearly is, takes one.
 */
#include "symbolize/sort.h"

#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"

#define DIGIT_BITS 11
#define N_DIGITS   6 /* 66 bits */
#define N_VALUES   (1u << DIGIT_BITS)

static uint32_t digit(uint64_t key, unsigned int d)
{
	return (uint32_t)(key >> (d * DIGIT_BITS)) & (N_VALUES - 1);
}

static bool pairs_sorted(const struct sort_pair *pairs, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (pairs[i - 1].key > pairs[i].key)
			return false;
	return true;
}

/* One stable pass by digit d; count becomes the positions. */
static void scatter(const struct sort_pair *from, struct sort_pair *to, size_t n, unsigned int d,
		    uint32_t *count)
{
	uint32_t sum = 0;

	for (uint32_t v = 0; v < N_VALUES; v++) {
		uint32_t here = count[v];

		count[v] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++)
		to[count[digit(from[i].key, d)]++] = from[i];
}

int sort_pairs(struct sort_pair *pairs, size_t n)
{
	_cleanup_free_ struct sort_pair *tmp = NULL;
	_cleanup_free_ uint32_t *counts = NULL;
	struct sort_pair *from = pairs, *to;

	if (pairs_sorted(pairs, n))
		return 0;
	if (n > UINT32_MAX)
		return -ENOMEM;
	tmp = malloc(n * sizeof(*tmp));
	counts = calloc((size_t)N_DIGITS * N_VALUES, sizeof(*counts));
	if (!tmp || !counts)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (unsigned int d = 0; d < N_DIGITS; d++)
			counts[d * N_VALUES + digit(pairs[i].key, d)]++;
	to = tmp;
	for (unsigned int d = 0; d < N_DIGITS; d++) {
		uint32_t *count = counts + d * N_VALUES;
		struct sort_pair *swap = from;

		if (count[digit(pairs[0].key, d)] == n)
			continue;
		scatter(from, to, n, d, count);
		from = to;
		to = swap;
	}
	if (from != pairs)
		memcpy(pairs, from, n * sizeof(*pairs));
	return 0;
}
