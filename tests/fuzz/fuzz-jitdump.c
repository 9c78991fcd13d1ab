/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the input is a jitdump file that grows; addresses in and around the functions
 * it names are looked up.
 *
 *	clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -I. -IBUILD \
 *		tests/fuzz/fuzz-jitdump.c symbolize/jitdump*.c symbolize/code-table.c \
 *		symbolize/sort.c
 *
 * Seeds are in corpus-jitdump: of tests/workloads/jitdump.c, and what Node.js writes of one
 *function in several versions. With a main of its own (FUZZ_REPLAY) it reads these, as make check
 *does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile size_t sink;

static void look_up(struct jitdump *j, uint64_t address)
{
	struct symbol s;

	if (jitdump_lookup(j, address, &s) != 0)
		return;
	sink += strlen(s.name) + (s.file ? strlen(s.file) : 0) + s.line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct symbol_limits limits = {.max_table_bytes = 1 << 20};
	struct jitdump *j = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || jitdump_new(&j, &limits) < 0)
		abort();
	for (size_t at = 0; at < 2; at++) {
		size_t upto = at ? n : n / 2;

		if (ftruncate(fd, 0) < 0 || pwrite(fd, data, upto, 0) != (ssize_t)upto)
			abort();
		(void)jitdump_update(j, fd, UINT64_MAX);
		/* Every word may be an address. */
		for (size_t i = 0; i + 8 <= upto && i < 65536; i += 4) {
			uint64_t address;

			memcpy(&address, data + i, sizeof(address));
			look_up(j, address);
			look_up(j, address + 10);
		}
	}
	jitdump_free(j);
	(void)close_fd(fd);
	return 0;
}

#ifdef FUZZ_REPLAY
#include <dirent.h>

static void replay(const char *directory, const char *name)
{
	static uint8_t bytes[1 << 16];
	char path[4096];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "re");
	n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		(void)fclose(f);
	(void)LLVMFuzzerTestOneInput(bytes, n);
	/* And cut anywhere. */
	for (size_t i = 0; i < n; i += 1 + n / 64)
		(void)LLVMFuzzerTestOneInput(bytes, i);
}

int main(void)
{
	DIR *d = opendir(FUZZ_REPLAY);
	unsigned int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		replay(FUZZ_REPLAY, e->d_name);
		n++;
	}
	if (d)
		(void)closedir(d);
	printf("%u files read\n", n);
	return n > 0 ? 0 : 1;
}
#endif
