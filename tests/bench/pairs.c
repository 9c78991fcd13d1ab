/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of malloc(48) and free(), so many as the argument says. Without one: the least nanoseconds
 * of a pair, by the thread's own clock, among a hundred times 100,000.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void run(long n)
{
	for (long i = 0; i < n; i++) {
		void *volatile p = malloc(48);

		free(p);
	}
}

static double now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	enum { TIMES = 100, N = 100000 };
	double least = 0;

	if (argc > 1) {
		run(atol(argv[1]));
		return 0;
	}
	for (int i = 0; i < TIMES; i++) {
		double begin = now_ns(), ns;

		run(N);
		ns = (now_ns() - begin) / N;
		least = i == 0 || ns < least ? ns : least;
	}
	printf("%.2f\n", least);
	return 0;
}
