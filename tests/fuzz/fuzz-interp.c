/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of the memory of a process with CPython, PHP or Ruby
 * (tests/runtimes/recording.h), all of which is the fuzzer's, opened and walked twice.
 * tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "tests/fuzz/recording-target.h"
#include "tests/runtimes/recorded-chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct memory *memory, const struct recording *recorded, FILE *out,
		const char **ret_why)
{
	struct interp *p = NULL;

	if (interp_new(&p, memory, recorded->image, ret_why) < 0)
		return;
	interp_explain(p, out);
	for (int round = 0; round < RECORDING_ROUNDS; round++) {
		for (uint32_t i = 0; i < recorded->n_samples; i++)
			(void)recorded_walk_chain(p, &recorded->samples[i], out);
	}
	(void)interp_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return recording_target(data, n, use);
}
