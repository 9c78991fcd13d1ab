/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The places of an interpreter's frames in the native stack, which proves them: each native call of
 * the interpreter's evaluation function must have, on its stack or in a register, the address of
 * the frame that it executes.
 */
#include <stdbool.h>

#include "runtimes/interp.h"
#include "src/process/frame-record.h"
#include "src/profiler/frame-source.h"

/* Where a process has its interpreter's evaluation function; n_ranges 0: not known. */
struct chain_code {
	enum runtime_kind kind; /* one with a chain */
	uint32_t n_ranges;
	struct frame_record_range ranges[FRAME_RECORD_MAX_RANGES];
};

/* Frames of a longer native stack stand for themselves. */
#define CHAIN_PLACES_MAX_NATIVE 2048

struct chain_places {
	uint32_t n;
	uint64_t addresses[FRAME_RECORD_MAX_FRAMES]; /* as in struct frame_record_frame */
	struct runtime_frame frames[FRAME_RECORD_MAX_FRAMES];
	/* Found: the native frame that each has its place at; UINT32_MAX: one that the walk has not
	 * reached. */
	uint32_t natives[FRAME_RECORD_MAX_FRAMES];
	uint64_t functions[CHAIN_PLACES_MAX_NATIVE]; /* as in struct runtime_frames */
};

/*
 * Finds the places of the n frames, which the caller has filled in, in the native stack of a
 * sample. still: the thread stands still, and not all of its registers are known: the innermost
 * call may have the address of its frame in one of these. READY: *ret is set, except cut and
 * read_ns, borrowed from chain; it lacks the frames of outer calls if the chain begins anew within
 * the native stack; NONE; UNPROVEN.
 */
enum frame_source_answer chain_places_find(struct chain_places *chain,
					   const struct chain_code *code,
					   const struct frame_source_sample *sample, bool still,
					   struct runtime_frames *ret);
