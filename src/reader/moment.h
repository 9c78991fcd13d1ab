/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a reader still sees a thread as it was sampled. It runs in front of all else on its CPU,
 * so the thread can have run there only while the reader was off the CPU. That is so from when it
 * had nothing left to do until the sample wakes it: once. It is off again if it has to wait, such
 * as for the lock of the process's memory, and the thread may run then.
 */
#include <stdbool.h>
#include <stdint.h>

/* From a sample until its reader runs takes a tenth of that. */
#define MOMENT_WAKES_NS UINT64_C(100000)

/* When this process ran, and how often the kernel had taken it off its CPU by then. */
struct moment {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t n_switches;
};

struct moment moment_now(void);

/* rest: when nothing was left to do. Of a sample of another thread on this CPU: that thread has not
 * run there between its sample and now. */
static inline bool moment_saw(const struct moment *now, const struct moment *rest,
			      uint64_t sample_time_ns)
{
	return sample_time_ns > rest->time_ns && now->n_switches == rest->n_switches + 1;
}

/*
 * The same where threads have events of their own: when such a thread ends, the kernel wakes the
 * reader for nothing, and it goes back to sleep inside of epoll_wait(). woke: when that had
 * returned. The reader was not off its CPU since then; before, it had nothing left to do, so the
 * sample woke it, and at once.
 */
static inline bool moment_saw_since(const struct moment *now, const struct moment *woke,
				    const struct moment *rest, uint64_t sample_time_ns)
{
	return sample_time_ns > rest->time_ns && now->n_switches == woke->n_switches &&
	       woke->time_ns - sample_time_ns < MOMENT_WAKES_NS;
}
