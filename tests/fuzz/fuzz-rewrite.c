/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a request of OTLP profiles, cut in two, put into each dialect and into JSON.
 * What comes out is such a request again.
 */
#include <stdio.h>

#include "proto/otlp-json.h"
#include "proto/otlp-rewrite.h"
#include "tests/fuzz/input.h"

static void adapt(const uint8_t *bytes, size_t n, bool sound)
{
	for (int dialect = OTLP_PLAIN; dialect <= OTLP_PARCA; dialect++) {
		struct wire_buffer out = {0}, again = {0};
		int r = otlp_adapt(bytes, n, (enum otlp_dialect)dialect, &out);

		if (sound && r < 0)
			abort();
		if (r == 0 && otlp_adapt(out.bytes, out.n, OTLP_PLAIN, &again) < 0)
			abort();
		wire_buffer_deinit(&again);
		wire_buffer_deinit(&out);
	}
}

static void split(const uint8_t *bytes, size_t n)
{
	struct otlp_half halves[2] = {0};

	if (otlp_split(bytes, n, halves) == 0) {
		for (size_t i = 0; i < 2; i++)
			adapt(halves[i].bytes.bytes, halves[i].bytes.n, true);
	}
	for (size_t i = 0; i < 2; i++)
		wire_buffer_deinit(&halves[i].bytes);
}

static void write_json(const uint8_t *bytes, size_t n)
{
	char *text = NULL;
	size_t n_text = 0;
	FILE *out = open_memstream(&text, &n_text);

	if (!out)
		abort();
	(void)otlp_json_write(out, bytes, n);
	(void)fclose(out);
	if (n_text > 100 + n * OTLP_JSON_MAX_GROWTH)
		abort();
	input_touch(text, n_text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	adapt(data, n, false);
	split(data, n);
	write_json(data, n);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
