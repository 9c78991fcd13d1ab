/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples that were walked and wait for a second source of frames. Each is in the profile already,
 * in its place among the others, but without a stack, until its frames come, or it has waited long
 * enough, or the room for those that wait is full, or the window closes: then it gets a stack
 * without them, with PROFILE_MARKER_RUNTIME_LATE, and is counted.
 *
 * Frames wait as rows of the profile, so nothing may wait when that is cleared.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiler/join.h"

struct pending;

struct pending_limits {
	uint32_t samples;
	uint64_t frame_bytes; /* of all frames that wait, at most 12 each */
	uint64_t wait_ns;     /* by the times of samples and records */
};

/* j: borrowed, and its profile. 0 or -ENOMEM. */
int pending_new(struct pending **ret, struct joiner *j, const struct pending_limits *limits);
struct pending *pending_free(struct pending *w);

/* Copies stack. sample->stack is not looked at. */
void pending_add(struct pending *w, const struct frame_key *key, uint32_t type,
		 const struct profile_sample *sample, const struct walked_stack *stack);
/* The frames of the oldest sample of that key; none: it is the native stack alone. false: no such
 * sample waits, or not any more. */
bool pending_come(struct pending *w, const struct frame_key *key,
		  const struct runtime_frames *frames);
/* Gives up what has waited too long at that time. */
void pending_expire(struct pending *w, uint64_t time_ns);
/* Gives up everything, and takes samples out of the profile whose stacks did not fit, counted as
 * dropped: to be called before it is read. */
void pending_finish(struct pending *w);
/* How many wait. */
uint32_t pending_count(const struct pending *w);
