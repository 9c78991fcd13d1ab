/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recording of a Java process's memory, registers and stacks
 * (tests/runtimes/recording.h), all of which are the fuzzer's, opened and walked twice.
 * tests/fuzz/run.sh builds and runs it; with FUZZ_REPLAY it is a test over what is recorded.
 */
#include "runtimes/hotspot-internal.h"
#include "tests/fuzz/input.h"
#include "tests/runtimes/recorded-hotspot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct recording recorded;
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	struct hotspot *h = NULL;
	const char *why = "";
	char *text = NULL;
	size_t n_text = 0;
	FILE *out;

	(void)recording_parse(&recorded, data, n);
	out = open_memstream(&text, &n_text);
	if (!out)
		abort();
	if (hotspot_new(&h, &memory, recorded.image, &why) == 0) {
		hotspot_explain(h, out);
		for (int round = 0; round < 2; round++) {
			for (uint32_t i = 0; i < recorded.n_samples; i++)
				(void)recording_walk(h, &recorded.samples[i], out);
		}
		if (h->places.n > HOTSPOT_MAX_PLACES)
			abort();
	}
	(void)fclose(out);
	input_touch_text(text);
	input_touch_text(why);
	free(text);
	(void)hotspot_free(h);
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
