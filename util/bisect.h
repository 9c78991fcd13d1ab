/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Binary search in a sorted table.
 *
 *	// the last symbol that starts at or below an address
 *	uint32_t n = bisect(t->n, i, t->items[i].start <= address);
 *	return n ? &t->items[n - 1] : NULL;
 */

/*
 * The index of the first of n_items items that does not fulfil a condition; n_items if all fulfil
 * it. The condition is an expression of the item's index; the macro declares that variable with the
 * name i. All items that fulfil the condition must come before those that do not.
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
