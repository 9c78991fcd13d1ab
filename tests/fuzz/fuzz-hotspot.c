/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of a Java process's memory, registers and stacks, opened and walked
 * twice. tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "runtimes/hotspot-internal.h"
#include "tests/fuzz/recording-target.h"
#include "tests/runtimes/recorded-hotspot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const struct memory *memory, const struct recording *recorded, FILE *out,
		const char **ret_why)
{
	struct hotspot *h = NULL;

	if (hotspot_new(&h, memory, recorded->image, ret_why) < 0)
		return;
	hotspot_explain(h, out);
	for (int round = 0; round < RECORDING_ROUNDS; round++) {
		for (uint32_t i = 0; i < recorded->n_samples; i++)
			(void)recording_walk(h, &recorded->samples[i], out);
	}
	if (h->memo->places.n > HOTSPOT_MAX_PLACES)
		abort();
	(void)hotspot_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return recording_target(data, n, use);
}
