/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the memory of a process, from BASE on, all of which is the fuzzer's: a library
 * as it is mapped at its beginning, in whose tables a variable of its threads is looked for, and
 * the structs of threads of glibc and of musl.
 */
#include <stdlib.h>

#include "runtimes/image.h"
#include "runtimes/musl.h"
#include "runtimes/thread-variable.h"
#include "tests/fuzz/elf-parts.h"
#include "tests/fuzz/input.h"

#define BASE	 UINT64_C(0x10000)
#define VARIABLE "otel_thread_ctx_v1"

struct input {
	const uint8_t *bytes;
	size_t n;
};

static bool read_input(void *ctx, uint64_t address, void *ret, size_t n)
{
	const struct input *in = ctx;

	if (address < BASE || address - BASE > in->n || n > in->n - (address - BASE))
		return false;
	memcpy(ret, in->bytes + (address - BASE), n);
	return true;
}

/* As the profiler has it. */
static struct memory memory_of(struct input *in)
{
	return (struct memory){
		.read = read_input, .ctx = in, .reads_left = 4000, .bytes_left = 4 << 20};
}

static void look_at_image(struct input *in)
{
	struct memory m = memory_of(in);
	struct thread_variable v = {0};
	struct image image;
	uint64_t start, end, at;

	if (!image_open(&image, &m, BASE))
		return;
	if (thread_variable_find(&image, VARIABLE, &v) > 0 &&
	    thread_variable_address(&m, &v, BASE + 0x2e0, 7, &at))
		input_sink += at;
	m = memory_of(in);
	input_sink += image_symbol(&image, VARIABLE) + thread_struct_bytes(&image);
	if (image_symbol_range(&image, "f", &start, &end) && start > end)
		abort();
	for (uint64_t pc = image.start; pc < image.end && pc - image.start < 8192; pc += 61)
		if (image_code_range(&image, pc, &start, &end) && (pc < start || pc >= end))
			abort();
}

static void look_at_threads(struct input *in)
{
	struct memory m = memory_of(in);
	struct thread_variable musl = {.module = 1};
	struct musl_thread t;
	uint64_t found = musl_thread_find(&m, BASE, in->bytes, in->n & ~(size_t)7), at;

	if (!found)
		return;
	musl.musl_thread = found;
	found = musl_thread_find_first(&m, found, 7);
	if (found && musl_thread_read(&m, found, &t) &&
	    thread_variable_musl_address(&m, &musl, t.pointer, &at))
		input_sink += at;
}

/* Lists of robust locks, wherever there may be one. */
static void look_at_lists(struct input *in)
{
	struct memory m = memory_of(in);

	for (uint64_t at = BASE; at < BASE + in->n; at += 256)
		input_sink += thread_pointer_of(&m, at, 7, 2304);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = {malloc(n + 1), n};

	if (!in.bytes)
		abort();
	memcpy((uint8_t *)in.bytes, data, n);
	look_at_image(&in);
	look_at_threads(&in);
	look_at_lists(&in);
	free((uint8_t *)in.bytes);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	replay_mutate = LLVMFuzzerCustomMutator;
	return replay_directory(FUZZ_REPLAY, 0, 32, 400);
}
#endif
