/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of a Python process's memory, opened and walked twice.
 * tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "runtimes/cpython-internal.h"
#include "tests/fuzz/recording-target.h"
#include "tests/runtimes/recorded-cpython.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct memory *memory, const struct recording *recorded, FILE *out,
		const char **ret_why)
{
	struct cpython *p = NULL;

	if (cpython_new(&p, memory, recorded->image, ret_why) < 0)
		return;
	cpython_explain(p, out);
	for (int round = 0; round < RECORDING_ROUNDS; round++) {
		for (uint32_t i = 0; i < recorded->n_samples; i++)
			(void)recorded_walk_python(p, &recorded->samples[i], out);
	}
	(void)cpython_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return recording_target(data, n, use);
}
