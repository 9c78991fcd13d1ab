/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the input is a perf map that grows; addresses at and around those that it
 * begins its lines with are looked up.
 */
#include "symbolize/symbolize.h"
#include "tests/fuzz/input.h"

static void look_up(struct perf_map *m, uint64_t address)
{
	struct symbol s;

	for (uint64_t at = address - 1; at != address + 2; at++) {
		if (perf_map_lookup(m, at, &s) != 0)
			continue;
		if (at - s.start >= s.size)
			abort();
		input_touch_text(s.name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct symbol_limits limits = {.max_table_bytes = 64 << 10};
	_cleanup_(perf_map_freep) struct perf_map *m = NULL;
	_cleanup_free_ char *text = input_text(data, n);
	_cleanup_close_ int fd = input_fd(data, n / 2);

	if (perf_map_new(&m, &limits) < 0 || perf_map_update(m, fd) < 0)
		abort();
	if (n > n / 2 && pwrite(fd, data + n / 2, n - n / 2, (off_t)(n / 2)) < 0)
		abort();
	if (perf_map_update(m, fd) < 0)
		abort();
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		look_up(m, strtoull(line, NULL, 16));
	}
	input_sink += perf_map_bytes(m) + perf_map_refused(m);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
