/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a file of recorded samples, read, walked and explained. All of it is the
 * fuzzer's: registers, stacks, mappings that lie, headers and call-frame information.
 *
 *	clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -I. \
 *		tests/fuzz/fuzz-recorded.c unwind/[a-z]*.c util/{text,hash}.c -ldw -lelf -lz
 *	for f in tests/data/unwind/?*.gz; do gzip -dc $f >corpus/$(basename $f .gz); done; ./a.out
 *corpus
 *
 * With a main of its own (FUZZ_REPLAY) it reads the files kept there, as make check does, and
 * changes each here and there.
 */
#include "unwind/explain.h"
#include "unwind/internal.h"
#include "unwind/recorded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void walk_all(struct recorded *r, struct unwinder *u)
{
	static struct unwind_frame frames[64];
	FILE *out = fopen("/dev/null", "we");
	size_t n;

	if (!out)
		abort();
	for (uint32_t i = 0; i < r->samples.n && i < 16; i++) {
		(void)recorded_walk(r, u, i, frames, 64, &n);
		if (n > 64)
			abort();
		if (i < 2)
			explain_sample(out, u, r, i);
	}
	(void)fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct unwind_limits limits = {
		.cache_entries = 256, .max_row_bytes = 65536, .max_inflate_bytes = 262144};
	char error[RECORDED_ERROR_MAX];
	struct unwinder *u = NULL;
	struct recorded *r = NULL;
	int e = recorded_parse(&r, data, n, error);

	if (e == -EBADMSG && !*error)
		abort(); /* a refusal says why */
	if (e == 0 && unwinder_new(&u, &limits) == 0) {
		if (recorded_open(r, u) == 0)
			walk_all(r, u);
	}
	(void)recorded_free(r);
	(void)unwinder_free(u);
	return 0;
}

#ifdef FUZZ_REPLAY
#include <dirent.h>
#include <zlib.h>

static uint8_t bytes[1 << 22];

static size_t load(const char *directory, const char *name)
{
	char path[4096];
	gzFile f;
	int n;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = gzopen(path, "rb");
	n = f ? gzread(f, bytes, sizeof(bytes)) : 0;
	if (f)
		(void)gzclose(f);
	return n > 0 ? (size_t)n : 0;
}

int main(void)
{
	DIR *d = opendir(FUZZ_REPLAY);
	unsigned int n_files = 0;
	uint32_t random = 1;

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = e->d_name[0] == '.' ? 0 : load(FUZZ_REPLAY, e->d_name);

		if (n == 0 || n == sizeof(bytes))
			continue;
		(void)LLVMFuzzerTestOneInput(bytes, n);
		for (int i = 0; i < 4; i++) { /* changes pile up */
			for (int k = 0; k < 16; k++) {
				random = random * 1664525 + 1013904223;
				bytes[16 + random % (n - 16)] = (uint8_t)(random >> 24);
			}
			(void)LLVMFuzzerTestOneInput(bytes, n);
		}
		(void)LLVMFuzzerTestOneInput(bytes, n / 2);
		n_files++;
	}
	if (d)
		(void)closedir(d);
	printf("%u files of %s\n", n_files, FUZZ_REPLAY);
	return n_files == 0;
}
#endif
