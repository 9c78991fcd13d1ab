/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sums of off-CPU time, by what threads waited for. */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

struct wait_sum {
	enum profile_marker marker;
	int64_t ns;
	uint64_t n; /* blocks that ended */
};

#define WAITS_MAX_REASONS PROFILE_N_MARKERS
/* Of the first type, which is off-CPU time, the most time first. Their number; none is of 0 ns. */
uint32_t waits_by_reason(const struct profile *p, struct wait_sum ret[WAITS_MAX_REASONS]);

/*
 * How many frames of a stack say only how the kernel puts threads to sleep, from its leaf on: the
 * kernel's, up to the function that called it, or of threads without one those of the scheduler.
 */
uint32_t waits_first_frame(const struct profile *p, uint32_t stack);

/* Contended waits for a lock of a process. */
struct lock_sum {
	uint32_t process, frame; /* rows of the profile; the frame names the lock */
	int64_t ns, longest_ns;
	uint64_t n, n_releases;
	/* Frames whose functions waited for most of the time, and released it most often as far as
	 * wake-ups were sampled; PROFILE_NONE: not known. */
	uint32_t waiter, releaser;
};

/*
 * p: with off-CPU time and wake-ups, if they were recorded, among its types. The locks, that of the
 * most time first: allocated, NULL without any. 0 or -ENOMEM.
 */
int waits_by_lock(const struct profile *p, struct lock_sum **ret, uint32_t *ret_n);

/* What a thread did with its time. */
struct thread_sum {
	uint32_t thread; /* row of the profile */
	int64_t ns, running_ns, runnable_ns, blocked_ns;
	enum profile_marker reason; /* of most of what it was blocked */
};

/* Of the first type, which is wall time: the threads, the one with the most time on a CPU first.
 * Allocated, NULL without any. 0 or -ENOMEM. */
int waits_by_thread(const struct profile *p, struct thread_sum **ret, uint32_t *ret_n);

/* The function of a frame that a sum names, or the lock; "-": PROFILE_NONE. Returns buf. */
const char *waits_frame_name(const struct profile *p, uint32_t frame, char *buf, size_t size);
