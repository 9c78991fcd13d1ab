/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps through the frames of a recorded Node.js (tests/data/v8) as the walk takes them: whatever
 * keeps the profiler from reading it is said in the stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "src/profiler/process-memory.h"
#include "src/profiler/runtimes.h"
#include "tests/runtimes/recording.h"
#include "tests/unit/recorded-file.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/memory-file.h"

static struct recording recorded;
static uint8_t *bytes;
static int memory = -1, maps = -1; /* files that stand for those of /proc */
static int refusal;		   /* what stands for a memory that cannot be opened */
static uint64_t burn_ns;	   /* CPU time that the next read takes */

static int open_memory(void *ctx, uint32_t pid, uint64_t image)
{
	return refusal ? refusal : dup(memory);
}

static int open_maps(void *ctx, uint32_t pid)
{
	CHECK_INT(lseek(maps, 0, SEEK_SET), ==, 0);
	return dup(maps);
}

static void on_reading(void *ctx, uint32_t pid, bool begins)
{
	uint64_t until = clock_get_ns(CLOCK_THREAD_CPUTIME_ID) + burn_ns;

	while (burn_ns && clock_get_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	burn_ns = 0;
}

static const struct memory_source source = {NULL, open_memory, open_maps, on_reading};

/* All that was recorded, at its addresses. */
static void write_memory(void)
{
	for (uint32_t i = 0; i < recorded.n_ranges; i++) {
		const struct recorded_range *r = &recorded.ranges[i];

		CHECK_INT(pwrite(memory, r->bytes, r->n, (off_t)r->at), ==, r->n);
	}
	CHECK_INT(ftruncate(memory, (off_t)1 << 47), ==, 0);
}

static void open_recording(void)
{
	static const char line[] = "00001000-7ffffffff000 rw-p 00000000 00:00 0 \n";
	size_t n;

	bytes = (uint8_t *)recorded_file_load("v8/", "22", "gz", &n);
	CHECK(recording_parse(&recorded, bytes, n));
	memory = memory_file_new("memory");
	maps = memory_file_new("maps");
	CHECK(memory >= 0 && maps >= 0);
	write_memory();
	CHECK_INT(write(maps, line, strlen(line)), ==, strlen(line));
}

/* How many functions with names a walk has. file: of what frames without one are said to be in. */
static size_t walk(struct runtimes *r, struct process_runtime *p, bool file)
{
	const struct recorded_walk *w = &recorded.samples[0];
	struct unwind_foreign frame = {
		.innermost = true, .stack = w->stack, .start = w->r[7], .n_stack = w->n};
	struct unwind_regs regs = {.valid = (1u << RECORDING_REGS) - 1};
	enum unwind_answer answer = UNWIND_STEPPED;
	enum unwind_outcome outcome;
	uint64_t missing;
	size_t n, total = 0;

	for (int i = 0; i < RECORDING_REGS; i++)
		regs.r[i] = w->r[i];
	frame.file_start = file ? w->r[16] - 1 : 0;
	frame.file_end = file ? w->r[16] + 1 : 0;
	runtimes_begin(r);
	for (; answer == UNWIND_STEPPED; frame.n++) {
		answer = runtimes_step(r, p, &frame, &regs, &outcome, &missing);
		frame.innermost = false;
	}
	runtimes_end(r);
	CHECK_INT(answer, ==, UNWIND_NOT_MINE);
	for (size_t i = 0; i < frame.n; i++) {
		const struct runtime_frame *f = runtimes_frames(r, i, &n);

		for (size_t k = 0; k < n; k++)
			total += f[k].function[0] != '[';
	}
	return total;
}

struct reading {
	struct runtimes *all;
	struct process_runtime *one;
};

static struct reading begin(void)
{
	struct reading r = {NULL, NULL};

	CHECK_INT(runtimes_new(&r.all, &source, 1), ==, 0);
	r.one = runtimes_add_process(r.all, 4711, recorded.image, 0, 0);
	CHECK(r.one);
	return r;
}

static void end(struct reading r)
{
	runtimes_free_process(r.all, r.one);
	runtimes_free(r.all);
}

static void test_read(void)
{
	struct reading r = begin();

	CHECK_INT(walk(r.all, r.one, false), >, 3);
	CHECK_INT(runtimes_marker(r.all), ==, PROFILE_N_MARKERS);
	end(r);
}

/* Reads take too long: the next walk does without, and says so. */
static void test_no_time(void)
{
	struct reading r = begin();

	CHECK_INT(walk(r.all, r.one, false), >, 3);
	burn_ns = 150 * NSEC_PER_MSEC;
	(void)walk(r.all, r.one, false);
	CHECK_INT(walk(r.all, r.one, false), ==, 0);
	CHECK_INT(runtimes_marker(r.all), ==, PROFILE_MARKER_RUNTIME_LATE);
	end(r);
}

/* It was not looked at yet: code that may be its own says so, code in a file does not. */
static void test_not_yet(void)
{
	struct reading r = begin();

	refusal = -EAGAIN;
	CHECK_INT(walk(r.all, r.one, false), ==, 0);
	CHECK_INT(runtimes_marker(r.all), ==, PROFILE_MARKER_RUNTIME_LATE);
	CHECK_INT(walk(r.all, r.one, true), ==, 0);
	CHECK_INT(runtimes_marker(r.all), ==, PROFILE_N_MARKERS);
	end(r);
	refusal = 0;
}

static void test_not_permitted(void)
{
	struct reading r = begin();

	refusal = -EPERM;
	(void)walk(r.all, r.one, false);
	CHECK_INT(walk(r.all, r.one, false), ==, 0);
	CHECK_INT(runtimes_marker(r.all), ==, PROFILE_N_MARKERS);
	end(r);
	refusal = 0;
}

/* A collector frees much at once, and samples from before can be proven no more; later ones can. */
static void test_in_vain(void)
{
	struct reading r = begin();

	CHECK_INT(walk(r.all, r.one, false), >, 3);
	CHECK_INT(ftruncate(memory, 0), ==, 0);
	CHECK_INT(ftruncate(memory, (off_t)1 << 47), ==, 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(walk(r.all, r.one, false), ==, 0);
	write_memory();
	CHECK_INT(walk(r.all, r.one, false), >, 3);
	end(r);
}

int main(void)
{
	NEED_X86_64();
	open_recording();
	RUN(test_read);
	RUN(test_no_time);
	RUN(test_not_yet);
	RUN(test_not_permitted);
	RUN(test_in_vain);
	recording_deinit(&recorded);
	free(bytes);
	return 0;
}
