/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the second source (frame-source.h) says of a stack that was walked: frames of interpreters,
 * which have their places among the native ones. */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "src/profiler/frame-source.h"
#include "src/sample/sample.h"

struct attribution;

/* Of a sample with n frames and their markers, of which n_kernel are the kernel's. */
enum frame_source_answer attribution_ask_source(struct attribution *a, const struct record *r,
						uint32_t n, uint32_t n_kernel,
						struct runtime_frames *ret);
/* The marker of a stack without the frames of the source; PROFILE_N_MARKERS: none. */
enum profile_marker attribution_source_marker(enum frame_source_answer answer);
/*
 * Asks about a stack of attribution_walk_to_keep(), which has n frames with its markers. true:
 * there are frames for it, borrowed, which attribution_join_kept() puts among a->kept. *ret_marker:
 * what the stack as it is, without them, ends with.
 */
bool attribution_ask_to_keep(struct attribution *a, const struct record *r, uint32_t n,
			     struct runtime_frames *ret, enum profile_marker *ret_marker);
void attribution_join_kept(struct attribution *a, const struct runtime_frames *frames);
