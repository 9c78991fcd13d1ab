/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples that were walked and wait for a second source of frames. Each is in the profile, in its
 * place among the others, but has no stack until its frames come. If it has waited too long, if too
 * many wait, or if the window closes, it gets the native stack with PROFILE_MARKER_RUNTIME_LATE,
 * and is counted.
 *
 * Frames wait as rows of the profile, so no sample may wait when the profile is cleared.
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

/* j and its profile are borrowed. 0 or -ENOMEM. */
int pending_new(struct pending **ret, struct joiner *j, const struct pending_limits *limits);
struct pending *pending_free(struct pending *w);

/* Adds a sample to the profile and lets it wait. Copies stack, and ignores sample->stack. */
void pending_add(struct pending *w, const struct frame_key *key, uint32_t type,
		 const struct profile_sample *sample, const struct walked_stack *stack);
/* Brings the frames of the oldest sample of that key; none: it has only the native stack. false: no
 * such sample waits, or it waits no longer. */
bool pending_come(struct pending *w, const struct frame_key *key,
		  const struct runtime_frames *frames);
/* Gives up samples that have waited too long at that time. */
void pending_expire(struct pending *w, uint64_t time_ns);
/* Call it before the profile is read: gives up all samples, and removes those from the profile
 * whose stacks did not fit, counted as dropped. */
void pending_finish(struct pending *w);
/* How many samples wait; for tests, which compare it with a model. */
uint32_t pending_count(const struct pending *w);
