/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: the input is the text of /proc/kallsyms; its addresses are looked up. */
#include "symbolize/symbolize.h"
#include "tests/fuzz/input.h"

static void look_up(const struct kallsyms *k, uint64_t address)
{
	struct symbol s;

	for (uint64_t at = address - 1; at != address + 2; at++) {
		if (kallsyms_lookup(k, at, &s) != 0)
			continue;
		if (at < s.start)
			abort();
		input_touch_text(s.name);
		input_touch_text(s.module_name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct symbol_limits limits = {.max_table_bytes = 64 << 10};
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	_cleanup_free_ char *text = input_text(data, n);
	_cleanup_close_ int fd = input_fd(data, n);

	if (kallsyms_new_fd(&k, fd, &limits) != 0)
		return 0;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		look_up(k, strtoull(line, NULL, 16));
	}
	look_up(k, kallsyms_text_start(k));
	look_up(k, UINT64_MAX - 2);
	input_sink += kallsyms_bytes(k) + kallsyms_refused(k);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
