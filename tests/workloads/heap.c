/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates known sizes on known paths, in two threads, and says what it allocated and still has:
 * "PATH size SIZE allocated N in-use N", where each path has one size of block. Blocks of "crossed"
 * are freed by another thread than the one that allocated them, half of those of "grown" end by
 * realloc(), and the others are left by one that fails. With an argument it ends with its standard
 * input.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL	  48
#define MEDIUM	  6000
#define LARGE	  700000
#define CROSSED	  3000
#define CLEARED	  20000
#define GROWN	  100000
#define N_SMALL	  400000
#define N_MEDIUM  8000
#define N_LARGE	  120
#define N_CROSSED 12000
#define N_CLEARED 2000
#define N_GROWN	  500

static volatile size_t too_many = SIZE_MAX / 2;
static void *kept_small[N_SMALL], *kept_medium[N_MEDIUM], *kept_large[N_LARGE];
static void *kept_crossed[N_CROSSED], *kept_cleared[N_CLEARED], *kept_grown[N_GROWN];

#define PATH __attribute__((noinline)) static void *

PATH allocate_small(void)
{
	void *p = malloc(SMALL);

	__asm__ volatile("" : "+r"(p));
	return p;
}
PATH allocate_medium(void)
{
	void *p = malloc(MEDIUM);

	__asm__ volatile("" : "+r"(p));
	return p;
}
PATH allocate_large(void)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, LARGE) != 0)
		return NULL;
	__asm__ volatile("" : "+r"(p));
	return p;
}
PATH allocate_crossed(void)
{
	void *p = malloc(CROSSED);

	__asm__ volatile("" : "+r"(p));
	return p;
}
PATH allocate_cleared(void)
{
	void *p = calloc(CLEARED / 8, 8);

	__asm__ volatile("" : "+r"(p));
	return p;
}
PATH allocate_grown(void *p)
{
	p = realloc(p, GROWN);
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* Every fifth small one, every second medium one, a quarter of the large ones stay. */
static void *first(void *arg)
{
	for (int i = 0; i < N_SMALL; i++) {
		kept_small[i] = allocate_small();
		if (i % 5) {
			free(kept_small[i]);
			kept_small[i] = NULL;
		}
	}
	for (int i = 0; i < N_MEDIUM; i++) {
		kept_medium[i] = allocate_medium();
		if (i % 2)
			free(kept_medium[i]);
	}
	for (int i = 0; i < N_CROSSED; i++)
		kept_crossed[i] = allocate_crossed();
	return arg;
}

/* With 12 KiB on its stack. */
static void *second(void *arg)
{
	volatile char deep[12 << 10];

	deep[0] = 1;
	for (int i = 0; i < N_LARGE; i++) {
		kept_large[i] = allocate_large();
		if (i % 4)
			free(kept_large[i]);
	}
	for (int i = 0; i < N_CLEARED; i++)
		kept_cleared[i] = allocate_cleared();
	for (int i = 0; i < N_GROWN; i++) {
		kept_grown[i] = allocate_grown(NULL);
		kept_grown[i] = allocate_grown(kept_grown[i]);
		/* No memory has so many, and what is there stays. */
		if (realloc(kept_grown[i], too_many))
			abort();
	}
	deep[sizeof(deep) - 1] = deep[0];
	return arg;
}

static void say(const char *path, long size, long n, long left)
{
	printf("%s size %ld allocated %ld in-use %ld\n", path, size, n, left);
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	(void)argv;
	if (pthread_create(&threads[0], NULL, first, NULL) != 0 ||
	    pthread_create(&threads[1], NULL, second, NULL) != 0)
		return 1;
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);
	for (int i = 0; i < N_CROSSED; i++) {
		if (i % 3)
			free(kept_crossed[i]);
	}
	say("allocate_small", SMALL, N_SMALL, N_SMALL / 5);
	say("allocate_medium", MEDIUM, N_MEDIUM, N_MEDIUM / 2);
	say("allocate_large", LARGE, N_LARGE, N_LARGE / 4);
	say("allocate_crossed", CROSSED, N_CROSSED, N_CROSSED / 3);
	say("allocate_cleared", CLEARED, N_CLEARED, N_CLEARED);
	say("allocate_grown", GROWN, 2 * N_GROWN, N_GROWN);
	(void)fflush(stdout);
	while (argc > 1 && getchar() != EOF)
		;
	return 0;
}
