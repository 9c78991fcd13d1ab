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
/* Sums the first type, which must be off-CPU time, by reason, the most time first. Returns the
 * number of sums; none is of 0 ns. */
uint32_t waits_by_reason(const struct profile *p, struct wait_sum ret[WAITS_MAX_REASONS]);

/*
 * The number of frames, from the leaf on, that only show how the kernel puts threads to sleep:
 * those of the kernel, or, in a stack without frames of the program, those of the scheduler.
 */
uint32_t waits_first_frame(const struct profile *p, uint32_t stack);

/* A function that waited or released: rows of the profile. An inlined one shares its frame with
 * others. PROFILE_NONE: the function has no name, or, as the frame, nothing is known. */
struct wait_caller {
	uint32_t frame, function;
};
#define WAIT_CALLER_NONE ((struct wait_caller){PROFILE_NONE, PROFILE_NONE})

/* Contended waits for a lock of a process. */
struct lock_sum {
	uint32_t process, frame; /* rows of the profile; the frame names the lock */
	int64_t ns, longest_ns;
	uint64_t n, n_releases;
	/* The function that waited longest, and the one that released the lock most often in
	 * sampled wake-ups. */
	struct wait_caller waiter, releaser;
};

/*
 * Sums the off-CPU time and the wake-ups of p, if it has these types, by lock, the most time first.
 * The caller frees *ret; NULL: no locks. 0 or -ENOMEM.
 */
int waits_by_lock(const struct profile *p, struct lock_sum **ret, uint32_t *ret_n);

/* What a thread did with its time. */
struct thread_sum {
	uint32_t thread; /* row of the profile */
	int64_t ns, running_ns, runnable_ns, blocked_ns;
	enum profile_marker reason; /* the one with most of its blocked time */
};

/* Sums the first type, which must be wall time, by thread, the most time on a CPU first. The caller
 * frees *ret; NULL: no threads. 0 or -ENOMEM. */
int waits_by_thread(const struct profile *p, struct thread_sum **ret, uint32_t *ret_n);

/* The name of a function that a sum has; "-": nothing is known. Returns buf. */
const char *waits_caller_name(const struct profile *p, struct wait_caller caller, char *buf,
			      size_t size);

/* The name of the sum's lock. Returns buf. */
const char *waits_lock_name(const struct profile *p, const struct lock_sum *lock, char *buf,
			    size_t size);
