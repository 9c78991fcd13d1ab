/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asks the second source (frame-source.h) for the frames of interpreters in a walked stack. */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "src/profiler/frame-source.h"
#include "src/sample/sample.h"

struct attribution;

/* Asks about a sample whose walk gave n frames with their markers, n_kernel of them the kernel's.
 * */
enum frame_source_answer attribution_ask_source(struct attribution *a,
						const struct frame_source *source,
						const struct record *r, uint32_t n,
						uint32_t n_kernel, struct runtime_frames *ret);
/* The marker of a stack without the frames of the source; PROFILE_N_MARKERS: none. */
enum profile_marker attribution_source_marker(enum frame_source_answer answer);
/*
 * Asks about a stack of attribution_walk_to_keep(), which has n frames with its markers. true: *ret
 * has its frames, borrowed, and attribution_join_kept() puts them into a->kept. *ret_marker: the
 * marker of the stack without these frames. The source is not asked unless interpreters are read.
 */
bool attribution_ask_to_keep(struct attribution *a, const struct frame_source *source,
			     const struct record *r, uint32_t n, struct runtime_frames *ret,
			     enum profile_marker *ret_marker);
/* marker: of the stack without these frames. Returns that of the stack with them. */
enum profile_marker attribution_join_kept(struct attribution *a,
					  const struct runtime_frames *frames,
					  enum profile_marker marker);
