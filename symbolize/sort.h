/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sorting of many addresses in linear time: tables of symbols come in hundreds of thousands. */
#include <stddef.h>
#include <stdint.h>

struct sort_pair {
	uint64_t key;
	uint32_t value, extra;
};

/* By key, equal keys stay in order. 0 or -ENOMEM. */
int sort_pairs(struct sort_pair *pairs, size_t n);
