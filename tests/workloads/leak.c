/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak MILLISECONDS: keeps 32 MiB from its start, and from so long after it 16 MiB of leaked
 * blocks, between as many that it frees. Prints what it leaked, in bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK  4096
#define N_KEPT 8192
#define N_LOST 4096

static void *kept[N_KEPT], *lost[N_LOST];

static long since(const struct timespec *begin)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begin->tv_sec) * 1000 + (now.tv_nsec - begin->tv_nsec) / 1000000;
}

/* Each has its own text, so that no compiler makes one function of them. */
__attribute__((noinline)) static void *allocate_kept(void)
{
	void *p = malloc(BLOCK);

	__asm__ volatile("# kept" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void *allocate_lost(void)
{
	void *p = malloc(BLOCK);

	__asm__ volatile("# lost" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void *allocate_freed(void)
{
	void *p = malloc(BLOCK);

	__asm__ volatile("# freed" : "+r"(p));
	return p;
}

int main(int argc, char **argv)
{
	struct timespec begin, pause = {.tv_nsec = 10000000};
	long ms = argc > 1 ? atol(argv[1]) : 1000;

	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < N_KEPT; i++)
		kept[i] = allocate_kept();
	printf("kept after %ld ms\n", since(&begin));
	while (since(&begin) < ms)
		(void)nanosleep(&pause, NULL);
	for (int i = 0; i < N_LOST; i++) {
		lost[i] = allocate_lost();
		free(allocate_freed());
	}
	printf("lost %d\n", N_LOST * BLOCK);
	return kept[0] && lost[0] ? 0 : 1;
}
