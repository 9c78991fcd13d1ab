/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For fuzz targets as tests: the files that are kept (compressed by gzip or not), as they are, cut
 * off, and with changes that pile up. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t replay_bytes[1 << 22];

/* What changes an input; NULL: bytes anywhere, and the changes pile up. */
static size_t (*replay_mutate)(uint8_t *data, size_t n, size_t max, unsigned int seed);

static inline size_t replay_load(const char *directory, const char *name)
{
	char path[4096];
	gzFile f;
	int n;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = gzopen(path, "rb");
	n = f ? gzread(f, replay_bytes, sizeof(replay_bytes)) : 0;
	if (f)
		(void)gzclose(f);
	return n > 0 && (size_t)n < sizeof(replay_bytes) ? (size_t)n : 0;
}

static inline void replay_changed(const char *directory, const char *name, size_t fixed, size_t n,
				  unsigned int round)
{
	static uint32_t random = 1;

	if (replay_mutate) {
		if (round % 4 == 0)
			n = replay_load(directory, name);
		n = replay_mutate(replay_bytes, n, n, round * 2654435761u >> 8);
	}
	for (size_t k = 0; !replay_mutate && k < 16 && k <= n / 8; k++) {
		random = random * 1664525 + 1013904223;
		replay_bytes[fixed + random % (n - fixed)] = (uint8_t)(random >> 24);
	}
	(void)LLVMFuzzerTestOneInput(replay_bytes, n);
}

/* Each is cut off in `cuts` places; bytes from `fixed` on are changed, `rounds` times. What main()
 * returns: 0, or 1 without files. */
static inline int replay_directory(const char *directory, size_t fixed, int cuts, int rounds)
{
	DIR *d = opendir(directory);
	unsigned int n_files = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = e->d_name[0] == '.' ? 0 : replay_load(directory, e->d_name);

		if (n <= fixed)
			continue;
		(void)LLVMFuzzerTestOneInput(replay_bytes, n);
		for (int i = 1; i <= cuts; i++)
			(void)LLVMFuzzerTestOneInput(replay_bytes,
						     n * (size_t)i / ((size_t)cuts + 1));
		for (int i = 0; i < rounds; i++)
			replay_changed(directory, e->d_name, fixed, n, (unsigned int)i);
		n_files++;
	}
	if (d)
		(void)closedir(d);
	printf("%u files of %s\n", n_files, directory);
	return n_files == 0;
}
