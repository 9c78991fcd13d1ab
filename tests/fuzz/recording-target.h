/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rest of a libFuzzer target of a recorded process (tests/runtimes/recording.h), all of which
 * is the fuzzer's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtimes/memory.h"
#include "tests/fuzz/input.h"
#include "tests/runtimes/recording.h"

enum { RECORDING_ROUNDS = 2 }; /* what was learned in the first serves the second */

/* use: opens it, and walks its samples so often; *ret_why: as the opening says. */
static inline int recording_target(const uint8_t *data, size_t n,
				   void (*use)(const struct memory *memory,
					       const struct recording *recorded, FILE *out,
					       const char **ret_why))
{
	struct recording recorded;
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	const char *why = "";
	char *text = NULL;
	size_t n_text = 0;
	FILE *out;

	(void)recording_parse(&recorded, data, n);
	out = open_memstream(&text, &n_text);
	if (!out)
		abort();
	use(&memory, &recorded, out, &why);
	(void)fclose(out);
	input_touch_text(text);
	input_touch_text(why);
	free(text);
	recording_deinit(&recorded);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	/* Behind the counts; a file is up to 600 KiB. */
	return replay_directory(FUZZ_REPLAY, 16, 3, 40);
}
#endif
