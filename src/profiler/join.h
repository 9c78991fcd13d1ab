/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One stack of native frames and those of a runtime. */
#include "src/profiler/frame-source.h"

/*
 * Rows of the profile, innermost first: n_kernel of the kernel, n_native of the program, and what
 * is behind them, markers. sp: of the native ones; 0: not known.
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
 * The order of n native frames, with their stack pointers, and those of a runtime: all of these are
 * in it, in their order: those that have no place stand at the outer end. ret: room for both, of
 * the runtime's at most FRAME_SOURCE_MAX_FRAMES. Returns how many.
 */
uint32_t join_order(const uint64_t *sp, uint32_t n, const struct runtime_frames *frames,
		    struct join_item *ret);

/* The row of one frame; PROFILE_NONE: it does not fit. */
uint32_t join_runtime_row(struct profile *p, const struct runtime_frame *f);

/* max_rows: of the stacks that will be given. 0 or -ENOMEM. */
int joiner_init(struct joiner *j, struct profile *p, uint32_t max_rows);
void joiner_deinit(struct joiner *j);

/*
 * The row of the stack with the runtime's frames in their places, before the markers. PROFILE_NONE:
 * it does not fit. marker: PROFILE_N_MARKERS, or one to be put behind all. type: of the sample, for
 * the counters.
 */
uint32_t joiner_stack(struct joiner *j, const struct walked_stack *stack,
		      const struct runtime_frames *frames, enum profile_marker marker,
		      uint32_t type);
