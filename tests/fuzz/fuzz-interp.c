/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of the memory of a process with PHP or Ruby
 * (tests/runtimes/recording.h), all of which is the fuzzer's, opened and walked twice.
 * tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "tests/fuzz/input.h"
#include "tests/runtimes/recorded-chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct recording recorded;
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	struct interp *p = NULL;
	const char *why = "";
	char *text = NULL;
	size_t n_text = 0;
	FILE *out;

	(void)recording_parse(&recorded, data, n);
	out = open_memstream(&text, &n_text);
	if (!out)
		abort();
	if (interp_new(&p, &memory, recorded.image, &why) == 0) {
		interp_explain(p, out);
		for (int round = 0; round < 2; round++) {
			for (uint32_t i = 0; i < recorded.n_samples; i++)
				(void)recorded_walk_chain(p, &recorded.samples[i], out);
		}
	}
	(void)fclose(out);
	input_touch_text(text);
	input_touch_text(why);
	free(text);
	(void)interp_free(p);
	recording_deinit(&recorded);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	/* Behind the counts. */
	return replay_directory(FUZZ_REPLAY, 16, 3, 40);
}
#endif
