/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Growable typed array with a limit that is set when it is made:
 *
 *	ARRAY(struct foo) foos = ARRAY_INIT(max);
 *	struct foo *f = array_push(&foos);	// zeroed; NULL: limit or no memory
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY(type)                                                                                \
	struct {                                                                                   \
		type *items;                                                                       \
		uint32_t n, cap, max;                                                              \
	}
#define ARRAY_INIT(limit)                                                                          \
	{                                                                                          \
		NULL, 0, 0, (limit)                                                                \
	}

/* Makes room for one more item; false at the limit or without memory. */
static inline bool array_reserve_one(void **items, uint32_t n, uint32_t *cap, uint32_t max,
				     size_t size)
{
	uint64_t want = *cap ? (uint64_t)*cap * 2 : 16;
	void *p;

	if (n < *cap)
		return true;
	if (want > max)
		want = max;
	if (want <= n)
		return false;
	p = realloc(*items, (size_t)want * size);
	if (!p)
		return false;
	*items = p;
	*cap = (uint32_t)want;
	return true;
}

#define array_push(a)                                                                              \
	(array_reserve_one((void **)&(a)->items, (a)->n, &(a)->cap, (a)->max, sizeof(*(a)->items)) \
		 ? (__typeof__((a)->items))memset(&(a)->items[(a)->n++], 0, sizeof(*(a)->items))   \
		 : NULL)

#define array_clear(a) ((void)((a)->n = 0))

#define array_deinit(a)                                                                            \
	do {                                                                                       \
		free((a)->items);                                                                  \
		(a)->items = NULL;                                                                 \
		(a)->n = (a)->cap = 0;                                                             \
	} while (0)

#define array_bytes(a) ((size_t)(a)->cap * sizeof(*(a)->items))
