/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by the page: "growth SMALL HUGE [KIB]" touches SMALL MiB of plain pages and HUGE MiB that
 * may be huge ones, writes to the plain ones again, and prints what its mappings then hold, as the
 * kernel says: "small BYTES huge BYTES of BYTES". It does so with so much on its stack.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "common.h"

#define PAGE 4096UL
#define KIB  (1UL << 10)
#define MIB  (1UL << 20)

static char *map(size_t n, int advice)
{
	/* Huge pages begin at multiples of their size. */
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = mmap(NULL, n + 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	p = (char *)(((unsigned long)p + 2 * MIB - 1) & ~(2 * MIB - 1));
	(void)madvise(p, n, advice);
	return p;
}

KNOWN void growth_small(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i += PAGE)
		p[i] = 1;
}

KNOWN void growth_huge(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i += PAGE)
		p[i] = 1;
}

KNOWN void growth_again(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i += PAGE)
		p[i] = 2;
}

/* A line of smaps for the mapping that holds the address, in bytes. */
static unsigned long of_mapping(const char *address, const char *key)
{
	unsigned long start, end, value = 0;
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	int here = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = (unsigned long)address >= start && (unsigned long)address < end;
		else if (here && strncmp(line, key, strlen(key)) == 0)
			value = strtoul(line + strlen(key), NULL, 10) * 1024;
	}
	if (f)
		fclose(f);
	return value;
}

static void grow(size_t small, size_t huge)
{
	char *plain = map(small, MADV_NOHUGEPAGE), *large = map(huge, MADV_HUGEPAGE);

	growth_small(plain, small);
	growth_huge(large, huge);
	growth_again(plain, small);
	printf("small %lu huge %lu of %lu\n", of_mapping(plain, "Rss:"),
	       of_mapping(large, "AnonHugePages:"), huge ? of_mapping(large, "Rss:") : 0);
}

KNOWN void growth_deep(unsigned long kib, size_t small, size_t huge)
{
	volatile char frame[KIB];

	frame[0] = frame[KIB - 1] = 1;
	if (kib > 0)
		growth_deep(kib - 1, small, huge);
	else
		grow(small, huge);
	frame[0] = frame[KIB - 1];
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	size_t small = argc > 2 ? strtoul(argv[1], NULL, 10) * MIB : MIB;
	size_t huge = argc > 2 ? strtoul(argv[2], NULL, 10) * MIB : 0;

	growth_deep(argc > 3 ? strtoul(argv[3], NULL, 10) : 0, small, huge);
	return 0;
}
