/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the input is a jitdump file that grows; addresses in and around its functions
 * are looked up, for their names and for how they are unwound.
 *
 * Seeds are in corpus-jitdump: of tests/workloads/jitdump.c and unwound.c, and what Node.js writes
 * of one function in several versions, without and with --perf-prof-unwinding-info. With a main of
 * its own (FUZZ_REPLAY) it reads these, as make check does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile size_t sink;

static void look_up(struct jitdump *j, enum jitdump_use use, uint64_t address)
{
	struct jitdump_unwinding u;
	struct symbol s;

	if (use == JITDUMP_NAMES && jitdump_lookup(j, address, &s) == 0)
		sink += strlen(s.name) + (s.file ? strlen(s.file) : 0) + s.line;
	if (use != JITDUMP_UNWINDING || jitdump_lookup_unwinding(j, address, &u) != 0)
		return;
	if (address < u.start || address >= u.end)
		abort();
	for (size_t i = 0; i < u.n_eh_frame; i++)
		sink += u.eh_frame[i];
}

static void read_file(const uint8_t *data, size_t n, enum jitdump_use use)
{
	const struct symbol_limits limits = {.max_table_bytes = 1 << 20};
	struct jitdump *j = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || jitdump_new(&j, &limits, use) < 0)
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
			look_up(j, use, address);
			look_up(j, use, address + 10);
		}
	}
	jitdump_free(j);
	(void)close_fd(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	read_file(data, n, JITDUMP_NAMES);
	read_file(data, n, JITDUMP_UNWINDING);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 40 /* the header stays */, 64, 50);
}
#endif
