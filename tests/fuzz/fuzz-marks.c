/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: which runtime an ELF file exports, as the profiler and the judge look. */
#include "runtimes/marks.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = input_fd(data, n);

	input_sink += runtime_marks_of(fd);
	(void)close(fd);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 500);
}
#endif
