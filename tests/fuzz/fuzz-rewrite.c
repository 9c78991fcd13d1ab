/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a request of OTLP profiles, cut in two, put into each dialect and into JSON.
 * What comes out is such a request again.
 */
#include <stdio.h>

#include "proto/otlp-json.h"
#include "proto/otlp-rewrite.h"
#include "tests/fuzz/input.h"

/* The dialects that it can be put into, a bit each. */
static unsigned int adapt(const uint8_t *bytes, size_t n)
{
	unsigned int taken = 0;

	for (unsigned int dialect = OTLP_PLAIN; dialect <= OTLP_PARCA; dialect++) {
		struct wire_buffer out = {0}, again = {0};

		if (otlp_adapt(bytes, n, (enum otlp_dialect)dialect, &out) == 0) {
			taken |= 1u << dialect;
			if (otlp_adapt(out.bytes, out.n, OTLP_PLAIN, &again) < 0)
				abort();
		}
		wire_buffer_deinit(&again);
		wire_buffer_deinit(&out);
	}
	return taken;
}

/* Halves are no worse than the whole. */
static void split(const uint8_t *bytes, size_t n, unsigned int taken)
{
	struct otlp_half halves[2] = {0};

	if (otlp_split(bytes, n, n % 8, halves) == 0) {
		for (size_t i = 0; i < 2; i++)
			if (taken & ~adapt(halves[i].bytes.bytes, halves[i].bytes.n))
				abort();
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
	split(data, n, adapt(data, n));
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
