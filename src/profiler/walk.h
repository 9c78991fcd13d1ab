/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The walk of a sample: its frames as rows of the window in a->frames, innermost first, the
 * kernel's before the user's; PROFILE_NONE where the window is full. The user's are those of
 * a->process at a->time_ns.
 *
 * A walk that does not reach the thread's entry ends with a marker that says why. The user's native
 * frames, without markers and those of runtimes, are in a->walked, too (a->n_walked).
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profiler/frame-source.h"
#include "src/sample/sample.h"

struct attribution;

/* Walks a sample. Returns the number of frames. */
uint32_t attribution_walk(struct attribution *a, const struct record *r);
/* Does the same for a stack that outlives the window: the user's frames are also in a->kept
 * (a->n_kept), as addresses and as numbers of known_frames. */
uint32_t attribution_walk_to_keep(struct attribution *a, const struct record *r);
/* The most frames that are kept. */
#define ATTRIBUTION_MAX_KEPT(a) ((a)->max_frames + FRAME_SOURCE_MAX_FRAMES)

/* Sets a->frames[n] to a user's frame of which only the address is known. Returns n + 1. */
uint32_t attribution_add_address(struct attribution *a, uint32_t n, uint64_t address);

/* Is the sample of a task outside of our pid namespace? The kernel gives such a task pid 0, the
 * number of the idle task, which has no user registers; no more is known of it. */
static inline bool attribution_is_out_of_sight(const struct record *r)
{
	return r->pid == 0 && r->sample.user_abi != PERF_SAMPLE_REGS_ABI_NONE;
}
