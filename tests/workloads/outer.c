/* SPDX-License-Identifier: Apache-2.0 */
/* main > outer > inner, the last inlined: what a separate debug file has to tell. */
static inline __attribute__((always_inline)) unsigned long inner(unsigned long a)
{
	for (int i = 0; i < 1000; i++)
		a = a * 31 + (a >> 7);
	return a;
}

__attribute__((noinline)) unsigned long outer(unsigned long a)
{
	return inner(a) ^ 5;
}

#include <stdlib.h>
#include "common.h"

volatile unsigned long total;

/* outer [PERCENT]: that much of a CPU, or all of one. */
int main(int argc, char **argv)
{
	const int percent = argc > 1 ? atoi(argv[1]) : 100;

	for (;;) {
		for (int i = 0; i < 100; i++)
			total = outer(total);
		if (percent < 100)
			rest(percent);
	}
}
