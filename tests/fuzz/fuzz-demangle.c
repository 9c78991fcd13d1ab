/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: each line of the input is a name, demangled in every style. */
#include "symbolize/symbolize.h"
#include "tests/fuzz/input.h"

#define MAX_BYTES (20 << 10) /* "about 16 KiB" */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = input_text(data, n);
	char *at = text;

	for (const char *name; (name = strsep(&at, "\n"));) {
		for (int style = SYMBOL_DEMANGLE_FULL; style <= SYMBOL_DEMANGLE_NONE; style++) {
			_cleanup_free_ char *s =
				symbol_demangle(name, (enum symbol_demangling)style);

			if (s && (strlen(s) > MAX_BYTES || style == SYMBOL_DEMANGLE_NONE))
				abort();
			input_touch_text(s);
		}
	}
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 500);
}
#endif
