/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sorts many addresses in linear time: symbol tables have hundreds of thousands. */
#include <stddef.h>
#include <stdint.h>

struct sort_pair {
	uint64_t key;
	uint32_t value, extra;
};

/* Sorts by key; equal keys stay in order. 0 or -ENOMEM. */
int sort_pairs(struct sort_pair *pairs, size_t n);
