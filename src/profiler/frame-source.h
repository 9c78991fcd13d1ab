/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A second source of frames: those that a runtime, such as an interpreter, keeps by itself, and
 * that stand between the native frames of the same stack. Another process may read them, so they
 * may come a while after the sample.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "unwind/unwind.h"

struct host_process;
struct record;

/* What a sample is known by to both sides. */
struct frame_key {
	uint64_t time_ns;
	uint32_t cpu, tid;
};

/*
 * A frame that a runtime has told of. sp is where it stands: in front of the first native frame of
 * that stack whose stack pointer is not below it, as if it were called from there. Native frames
 * whose stack pointers lie in [sp, sp_end) are the runtime's own machinery, and are left out.
 */
struct runtime_frame {
	uint64_t sp, sp_end; /* sp_end <= sp: nothing is left out */
	enum profile_runtime runtime;
	const char *function, *file; /* of strangers; NULL or "": not known */
	uint32_t line, start_line;   /* 0: not known */
};

/* Innermost first. What is beyond the limit is left out, and the stack counts as too deep. */
#define FRAME_SOURCE_MAX_FRAMES 1024
struct runtime_frames {
	const struct runtime_frame *items;
	size_t n;
	bool cut; /* there are more, which were left out */
	/* Only READY, NULL: none. Of each native frame: the function of the runtime that it is a
	 * call of, by its first address; 0: it is no such call. */
	const uint64_t *functions;
	/* Of a thread that blocks, only READY: it had these frames if it did not run from the
	 * sample until then (CLOCK_MONOTONIC). */
	uint64_t read_ns;
};

/* A sample as it was walked; all is borrowed for the call. */
struct frame_source_sample {
	struct frame_key key;
	const struct host_process *process;
	const struct record *record;
	const struct unwind_frame *frames; /* native ones, innermost first */
	size_t n;
	bool whole; /* up to the thread's entry */
};

enum frame_source_answer {
	FRAME_SOURCE_NONE, /* the sample is none of its runtimes' */
	FRAME_SOURCE_READY,
	FRAME_SOURCE_LATER, /* attribution_add_frames() will bring them */
	/* There are none, and the stack says so: nobody has read them in time, or what was read
	 * does not explain the stack. */
	FRAME_SOURCE_MISSED,
	FRAME_SOURCE_UNPROVEN,
};

struct frame_source {
	/* READY: *ret is set, borrowed until the next call. */
	enum frame_source_answer (*ask)(void *ctx, const struct frame_source_sample *sample,
					struct runtime_frames *ret);
	void *ctx;
	uint64_t wait_ns; /* so long a sample waits, by the times of the records behind it */
};
