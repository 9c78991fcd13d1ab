/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Joins native frames and a runtime's frames to one stack. */
#include "src/profiler/frame-source.h"

/*
 * Rows of the profile, innermost first: n_kernel of the kernel, n_native of the program, then
 * markers. sp: the stack pointers of the native ones; 0: unknown.
 */
struct walked_stack {
	const uint32_t *rows;
	const uint64_t *sp;
	uint32_t n, n_kernel, n_native;
};

/* A frame of the whole stack: the i-th native one, or the i-th of the runtime. */
struct join_item {
	bool runtime;
	uint32_t i;
};

struct joiner {
	struct profile *p;	 /* borrowed */
	uint32_t *rows;		 /* scratch */
	struct join_item *items; /* the same */
	uint32_t max;
};

/*
 * Orders n native frames, with their stack pointers, and a runtime's frames. All frames of the
 * runtime are in the result, in their order; those without a place come at the outer end. ret: room
 * for both, at most FRAME_SOURCE_MAX_FRAMES of the runtime. Returns how many they are.
 */
uint32_t join_order(const uint64_t *sp, uint32_t n, const struct runtime_frames *frames,
		    struct join_item *ret);

/* Adds a frame of a runtime to the profile. Returns its row; PROFILE_NONE: it does not fit. */
uint32_t join_runtime_row(struct profile *p, const struct runtime_frame *f);

/* max_rows: the most rows of a stack. p is borrowed. 0 or -ENOMEM. */
int joiner_init(struct joiner *j, struct profile *p, uint32_t max_rows);
void joiner_deinit(struct joiner *j);

/*
 * Adds the stack with the runtime's frames in their places, before the markers. marker: one to add
 * at the end, or PROFILE_N_MARKERS. type: the sample's, for the counters. Returns its row;
 * PROFILE_NONE: it does not fit.
 */
uint32_t joiner_stack(struct joiner *j, const struct walked_stack *stack,
		      const struct runtime_frames *frames, enum profile_marker marker,
		      uint32_t type);
