/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has the markers of the allocation library in its own place, and so hears what it tells without a
 * kernel that can set probes. Says how far that is from what was really allocated and is in use.
 * Run it with PERFWALK_ALLOC_BYTES=65536; linked with -rdynamic, so that the library finds the
 * markers.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MEAN   65536
#define SIZE   3000
#define N      30000
#define MAX_IN 4096

static uint64_t blocks[MAX_IN], last;
static unsigned int n_in, n_told, n_undone, n_wrong;

void perfwalk_alloc_sample(const void *block, size_t bytes, uint64_t mean, uint64_t table);
void perfwalk_free_sample(const void *block, uint64_t undone);

void perfwalk_alloc_sample(const void *block, size_t bytes, uint64_t mean, uint64_t table)
{
	n_told++;
	n_wrong += bytes != SIZE || mean != MEAN || !table || n_in == MAX_IN;
	if (n_in < MAX_IN)
		blocks[n_in++] = (uintptr_t)block;
}

void perfwalk_free_sample(const void *block, uint64_t undone)
{
	n_undone += undone != 0;
	if (undone) {
		n_wrong += last != (uintptr_t)block;
		blocks[n_in++] = last;
		return;
	}
	for (unsigned int i = 0; i < n_in; i++) {
		if (blocks[i] == (uintptr_t)block) {
			last = blocks[i];
			blocks[i] = blocks[--n_in];
			return;
		}
	}
	n_wrong++;
}

/* Each way to get memory, in turn: inside, some C libraries use another one of them. */
static void *allocate(unsigned int i)
{
	void *p = NULL;

	switch (i % 5) {
	case 0:
		return malloc(SIZE);
	case 1:
		return calloc(SIZE / 4, 4);
	case 2:
		return posix_memalign(&p, 64, SIZE) == 0 ? p : NULL;
	case 3:
		return aligned_alloc(8, SIZE);
	default:
		return realloc(NULL, SIZE);
	}
}

static int check(const char *what, unsigned int picked, unsigned int n)
{
	double p = 1 - exp(-(double)SIZE / MEAN), z = (picked - n * p) / sqrt(n * p * (1 - p));

	printf("%s: %u of %u blocks were picked, %.1f standard deviations off\n", what, picked, n,
	       z);
	return fabs(z) < 5;
}

int main(void)
{
	static void *kept[N];
	volatile size_t too_many = SIZE_MAX / 2;
	unsigned int live;

	(void)setvbuf(stdout, NULL, _IONBF, 0); /* a buffer is a block, too */
	for (unsigned int i = 0; i < N; i++) {
		kept[i] = allocate(i);
		if (!kept[i] || realloc(kept[i], too_many))
			return 1;
		if (i % 3 == 0)
			free(kept[i]);
	}
	live = n_in;
	printf("%u ends were undone, %u times the library was wrong\n", n_undone, n_wrong);
	return check("allocated", n_told, N) && check("in use", live, N - N / 3) &&
			       n_undone == n_told && n_wrong == 0
		       ? 0
		       : 1;
}
