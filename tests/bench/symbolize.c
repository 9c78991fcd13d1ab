/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of naming: symbolize-bench names|lines FILE [DEBUG-FILE] <ADDRESSES. The CPU time to open
 * the file and name the first address, then that of all of them, once, again, and with each name
 * read to its end, and the memory that is kept when the file's own pages are let go.
 * tests/bench/symbolize.sh asks others the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "util/array.h"

static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *link, uint32_t crc)
{
	const char *file = ctx;

	return file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
}

/* KiB of anonymous memory of this process. */
static long memory(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long n = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &n) == 1)
			break;
	if (f)
		(void)fclose(f);
	return n;
}

/* CPU time: others may be at work on the host. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static volatile size_t n_read; /* bytes of names */

static size_t ask(struct symbol_file *f, uint64_t address, bool lines, bool read)
{
	struct symbol chain[SYMBOL_MAX_CHAIN];
	size_t n = 1;
	int r;

	if (lines)
		r = symbol_file_lines(f, address, chain, SYMBOL_MAX_CHAIN, &n);
	else
		r = symbol_file_find(f, address, chain);
	if (r != 0)
		return 0;
	for (size_t i = 0; read && i < n; i++)
		n_read += strlen(symbol_name(&chain[i]));
	return n;
}

static double pass(struct symbol_file *f, const uint64_t *addresses, uint32_t n, bool lines,
		   bool read, size_t *found)
{
	uint64_t begin = cpu_ns();

	for (uint32_t i = 0; i < n; i++)
		*found += ask(f, addresses[i], lines, read);
	return (double)(cpu_ns() - begin) / n;
}

static int measure(bool lines, const char *name, const char *debug, const uint64_t *addresses,
		   uint32_t n)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol_file *f = NULL;
	long before = memory();
	uint64_t begin = cpu_ns();
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC);
	double first_ms, once, again, read;
	size_t found = 0;

	limits.max_line_bytes = lines ? UINT64_C(16) << 20 : 0;
	if (fd < 0 || symbol_file_new_fd(&f, fd, &limits, open_debug, (void *)debug) < 0)
		return 1;
	found += ask(f, addresses[0], lines, false);
	first_ms = (double)(cpu_ns() - begin) / 1e6;
	once = pass(f, addresses, n, lines, false, &found);
	again = pass(f, addresses, n, lines, false, &found);
	read = pass(f, addresses, n, lines, true, &found);
	(void)printf("%-16s %8.2f ms %7.0f ns %7.0f ns %7.0f ns %8ld KiB %8zu",
		     lines ? "perfwalk lines" : "perfwalk names", first_ms, once, again, read,
		     memory() - before, found);
	symbol_file_trim(f);
	(void)printf("; %zu KiB kept\n", symbol_file_bytes(f) >> 10);
	symbol_file_free(f);
	return 0;
}

int main(int argc, char **argv)
{
	ARRAY(uint64_t) addresses = ARRAY_INIT(1 << 24);
	char line[64];
	uint64_t *item;
	int r;

	if (argc < 3)
		return 2;
	while (fgets(line, sizeof(line), stdin) && (item = array_push(&addresses)))
		*item = strtoull(line, NULL, 16);
	if (!addresses.n)
		return 2;
	r = measure(strcmp(argv[1], "lines") == 0, argv[2], argc > 3 ? argv[3] : NULL,
		    addresses.items, addresses.n);
	array_deinit(&addresses);
	return r;
}
