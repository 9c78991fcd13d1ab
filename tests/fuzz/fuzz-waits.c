/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: samples of waits, six bytes each, in the tables of locks, reasons, threads. */
#include "tests/fuzz/input.h"
#include "tests/unit/waits-model.h"

#define MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	waits_model_run(data, n < MAX_BYTES ? n : MAX_BYTES);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 8, 200);
}
#endif
