/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of the memory of a process with V8, registers and stacks, opened
 * and walked twice. tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what
 * is recorded.
 */
#include "runtimes/v8-internal.h"
#include "tests/fuzz/recording-target.h"
#include "tests/runtimes/recorded-v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct memory *memory, const struct recording *recorded, FILE *out,
		const char **ret_why)
{
	struct v8 *v = NULL;

	if (v8_new(&v, memory, recorded->image, ret_why) < 0)
		return;
	v8_explain(v, out);
	for (int round = 0; round < RECORDING_ROUNDS; round++) {
		for (uint32_t i = 0; i < recorded->n_samples; i++)
			(void)recorded_walk_v8(v, &recorded->samples[i], out);
	}
	if (v->memo->places.n > V8_MAX_PLACES)
		abort();
	(void)v8_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return recording_target(data, n, use);
}
