/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least-significant-digit radix sort. All histograms come from one pass; a digit that all keys
 * share costs nothing, so addresses of one module take three passes. A sorted input takes one, and
 * so does kallsyms: only the programs of BPF, its last lines, are in no order.
 */
#include "symbolize/sort.h"

#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"

#define DIGIT_BITS 11
#define N_DIGITS   6 /* 66 bits */
#define N_VALUES   (1u << DIGIT_BITS)
#define MAX_LATE   16 /* pairs behind the sorted ones that are inserted one by one */
#define MAX_FEW	   64 /* of as many, all are: the histograms alone take longer */

static uint32_t digit(uint64_t key, unsigned int d)
{
	return (uint32_t)(key >> (d * DIGIT_BITS)) & (N_VALUES - 1);
}

/* How many at the beginning are in order. */
static size_t n_sorted(const struct sort_pair *pairs, size_t n)
{
	size_t i = 1;

	while (i < n && pairs[i - 1].key <= pairs[i].key)
		i++;
	return i < n ? i : n;
}

/* Behind those that are not greater. */
static void insert(struct sort_pair *pairs, size_t n, struct sort_pair late)
{
	size_t at = n;

	while (at > 0 && pairs[at - 1].key > late.key)
		at--;
	memmove(pairs + at + 1, pairs + at, (n - at) * sizeof(*pairs));
	pairs[at] = late;
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
	size_t sorted = n_sorted(pairs, n);

	if (n <= MAX_FEW || n - sorted <= MAX_LATE) {
		for (; sorted < n; sorted++)
			insert(pairs, sorted, pairs[sorted]);
		return 0;
	}
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
