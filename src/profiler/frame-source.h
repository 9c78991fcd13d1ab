/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A second source of frames: a runtime, such as an interpreter, keeps frames of its own, which
 * belong between the native frames of the same stack. Another process may read them.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "unwind/unwind.h"

struct host_process;
struct record;

/* Identifies a sample to both sides. */
struct frame_key {
	uint64_t time_ns; /* perf clock */
	uint32_t cpu, tid;
};

/*
 * A frame of a runtime. sp is its place: before (inside of) the first native frame whose stack
 * pointer is not below it, as if that frame had called it. Native frames whose stack pointers lie
 * in [sp, sp_end) are the runtime's own machinery, and are left out.
 */
struct runtime_frame {
	uint64_t sp, sp_end; /* sp_end <= sp: no native frame is left out */
	enum profile_runtime runtime;
	const char *function, *file; /* of strangers; NULL or "": unknown */
	uint32_t line, start_line;   /* 0: unknown */
};

enum frame_source_answer {
	FRAME_SOURCE_NONE, /* the sample has no frames of its runtimes */
	FRAME_SOURCE_READY,
	/* The stack lacks them, and gets a marker that says so. */
	FRAME_SOURCE_MISSED,   /* they were not read in time */
	FRAME_SOURCE_UNREAD,   /* nobody reads them, or not at such samples */
	FRAME_SOURCE_UNPROVEN, /* those that were read do not explain the stack */
};

/* Innermost first. Frames beyond the limit are left out, and the stack counts as too deep. */
#define FRAME_SOURCE_MAX_FRAMES 1024
struct runtime_frames {
	const struct runtime_frame *items;
	size_t n;
	bool cut; /* further frames were left out */
	/* With FRAME_SOURCE_READY: why those of another interpreter of the process are missing, or
	 * some of this one; FRAME_SOURCE_NONE: none are. */
	enum frame_source_answer lacks;
	/* With FRAME_SOURCE_READY, or NULL. For each native frame that is a call of a function of
	 * the runtime: the first address of that function; 0 for other frames. */
	const uint64_t *functions;
	/* With FRAME_SOURCE_READY, for a thread that blocks: the frames are right if the thread did
	 * not run between the sample and this time (CLOCK_MONOTONIC). */
	uint64_t read_ns;
};

/* A sample as it was walked; borrowed for the call. */
struct frame_source_sample {
	struct frame_key key;
	const struct host_process *process;
	const struct record *record;
	const struct unwind_frame *frames; /* native ones, innermost first */
	size_t n;
	bool whole; /* they reach the thread's entry */
};

struct frame_source {
	/* READY: *ret is set, borrowed until the next call. */
	enum frame_source_answer (*ask)(void *ctx, const struct frame_source_sample *sample,
					struct runtime_frames *ret);
	void *ctx;
};
