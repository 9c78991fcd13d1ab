/* SPDX-License-Identifier: Apache-2.0 */
/* What is inflated of one file after the other does not stay for good: resident memory, as the
 * kernel counts it, against the blocks that are in use. */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "util/heap.h"

#define MIB	((size_t)1 << 20)
#define N_FILES 6

static long resident_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "re");

	CHECK(f != NULL);
	while (kib < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "RssAnon: %ld", &kib);
	(void)fclose(f);
	return kib;
}

static void *block(size_t n)
{
	void *p = malloc(n);

	CHECK(p != NULL);
	memset(p, 1, n);
	/* Somebody may read it: one that is freed unread might never be made. */
	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

/* A section of each file is inflated, its table made, and the section freed. */
static long grown_kib(bool tell)
{
	void *tables[N_FILES], *kept[N_FILES];
	long before;

	if (tell)
		heap_return_large_blocks();
	free(block(24 * MIB)); /* which glibc learns from */
	before = resident_kib();
	for (size_t i = 0; i < N_FILES; i++) {
		void *section = block((8 + 2 * i) * MIB);

		tables[i] = block(64 << 10);
		free(section);
		kept[i] = block(16 << 10);
	}
	before = resident_kib() - before;
	for (size_t i = 0; i < N_FILES; i++) {
		free(tables[i]);
		free(kept[i]);
	}
	return before;
}

static void test_large_blocks(void)
{
	int status;
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		long kib = grown_kib(false);

		fprintf(stderr, "  %ld KiB more without being told\n", kib);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK_INT(status, ==, 0);
	CHECK_INT(grown_kib(true), <, 2048);
}

/* Tables of many files, of which a few stay, everywhere on the heap. */
static void test_pages(void)
{
	enum { N = 1000 };
	static void *blocks[N];
	long before = resident_kib(), all, left;

	for (size_t i = 0; i < N; i++)
		blocks[i] = block(100 << 10);
	all = resident_kib() - before;
	for (size_t i = 0; i < N; i++) {
		if (i % 20 != 19)
			free(blocks[i]);
	}
	left = resident_kib() - before;
	CHECK_INT(left, >, all / 2);
	heap_return_pages();
	CHECK_INT(resident_kib() - before, <, all / 10);
	for (size_t i = 19; i < N; i += 20)
		free(blocks[i]);
}

int main(void)
{
#ifndef WITH_SANITIZERS /* they have a heap of their own */
	RUN(test_large_blocks);
	RUN(test_pages);
#endif
	return 0;
}
