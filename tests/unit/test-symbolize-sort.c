/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/sort.h"
#include "tests/unit/test.h"

#define MAX 5000

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

/* value is the place before, so that this order is total. */
static int compare(const void *a, const void *b)
{
	const struct sort_pair *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

/* The first ones are in order, the others have keys below. */
static void check(size_t n, size_t n_ordered, uint64_t below)
{
	static struct sort_pair pairs[MAX], expected[MAX];

	for (size_t i = 0; i < n; i++)
		pairs[i] = (struct sort_pair){
			.key = i < n_ordered ? UINT64_C(0xffffffff81000000) + i / 2 * 16
					     : UINT64_C(0xffffffff81000000) - below / 2 +
						       draw((uint32_t)below),
			.value = (uint32_t)i,
		};
	memcpy(expected, pairs, n * sizeof(*pairs));
	qsort(expected, n, sizeof(*expected), compare);
	CHECK_INT(sort_pairs(pairs, n), ==, 0);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(pairs[i].key, ==, expected[i].key);
		CHECK_INT(pairs[i].value, ==, expected[i].value);
	}
}

static void test_any(void)
{
	for (size_t n = 0; n < 200; n++)
		check(n, 0, 1 + draw(1000));
	for (int i = 0; i < 20; i++)
		check(draw(MAX), 0, 1u << (1 + i));
}

static void test_nearly_sorted(void)
{
	for (size_t late = 0; late < 40; late++) {
		check(MAX, MAX - late, 100000);
		check(MAX, MAX - late, 2);
	}
}

int main(void)
{
	RUN(test_any);
	RUN(test_nearly_sorted);
	return 0;
}
