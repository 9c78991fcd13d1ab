/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a file of recorded samples, read, walked and explained. All of it is the
 * fuzzer's: registers, stacks, mappings that lie, headers and call-frame information.
 * tests/fuzz/run.sh builds and runs it.
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
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, sizeof(RECORDED_MAGIC) + 7, 1, 4);
}
#endif
