/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of the memory of a process with V8, registers and stacks
 * (tests/runtimes/recording.h), all of which are the fuzzer's, opened and walked twice.
 * tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "runtimes/v8-internal.h"
#include "tests/fuzz/input.h"
#include "tests/runtimes/recorded-v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct recording recorded;
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	struct v8 *v = NULL;
	const char *why = "";
	char *text = NULL;
	size_t n_text = 0;
	FILE *out;

	(void)recording_parse(&recorded, data, n);
	out = open_memstream(&text, &n_text);
	if (!out)
		abort();
	if (v8_new(&v, &memory, recorded.image, &why) == 0) {
		v8_explain(v, out);
		for (int round = 0; round < 2; round++) {
			for (uint32_t i = 0; i < recorded.n_samples; i++)
				(void)recorded_walk_v8(v, &recorded.samples[i], out);
		}
		if (v->places.n > V8_MAX_PLACES)
			abort();
	}
	(void)fclose(out);
	input_touch_text(text);
	input_touch_text(why);
	free(text);
	(void)v8_free(v);
	recording_deinit(&recorded);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	/* Behind the counts; a file is 600 KiB. */
	return replay_directory(FUZZ_REPLAY, 16, 3, 40);
}
#endif
