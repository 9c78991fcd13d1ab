/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Search by halves in what is sorted.
 *
 *	// the last symbol that starts at or below an address
 *	uint32_t n = bisect(t->n, i, t->items[i].start <= address);
 *	return n ? &t->items[n - 1] : NULL;
 */

/*
 * How many of n_items items, from the first one on, fulfil a condition: n_items if all do, and
 * otherwise the index of the first one that does not. The condition is an expression of the item's
 * index, a variable that the macro declares by the name i. No item that fulfils it may follow one
 * that does not.
 */
#define bisect(n_items, i, condition)                                                              \
	({                                                                                         \
		__typeof__((n_items) + 0U) bisect_low_ = 0, bisect_high_ = (n_items);              \
                                                                                                   \
		while (bisect_low_ < bisect_high_) {                                               \
			__typeof__(bisect_low_) i =                                                \
				bisect_low_ + (bisect_high_ - bisect_low_) / 2;                    \
                                                                                                   \
			if (condition)                                                             \
				bisect_low_ = i + 1;                                               \
			else                                                                       \
				bisect_high_ = i;                                                  \
		}                                                                                  \
		bisect_low_;                                                                       \
	})
