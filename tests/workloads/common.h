/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every workload shares. Functions whose names a test looks for are KNOWN: never inlined,
 * cloned or merged. A call that must stay a real frame is followed by KEEP_FRAME, so that the
 * compiler cannot turn it into a jump.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define KNOWN	     __attribute__((noinline, noclone, used))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* Burns CPU in the caller's own frame. */
#define SPIN(n)                                                                                    \
	do {                                                                                       \
		for (uint64_t spin_i = 0; spin_i < (n); spin_i++)                                  \
			__asm__ volatile("" : "+r"(spin_i));                                       \
	} while (0)

#define SPIN_SHORT 20000

static inline uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sleeps each time the thread has had 20 ms of CPU, so long that it gets PERCENT of one at most:
 * others have the rest, where a test only wants that something is recorded. */
static inline void rest(int percent)
{
	static __thread uint64_t rested_ns;
	const uint64_t had_ns = thread_cpu_ns() - rested_ns;
	struct timespec t = {.tv_nsec = (long)had_ns * (100 - percent) / percent};

	if (had_ns < 20000000)
		return;
	(void)nanosleep(&t, NULL);
	rested_ns = thread_cpu_ns();
}

/* Burns CPU in the caller's own frame until this place has had PERCENT of all the CPU time of its
 * thread, by the thread's own clock: its share is the same on every processor. */
#define SPIN_SHARE(percent)                                                                        \
	do {                                                                                       \
		static __thread uint64_t spin_own_ns;                                              \
		const uint64_t spin_begin_ns = thread_cpu_ns();                                    \
		uint64_t spin_now_ns = spin_begin_ns;                                              \
		while ((spin_own_ns + spin_now_ns - spin_begin_ns) * 100 <                         \
		       spin_now_ns * (percent)) {                                                  \
			SPIN(SPIN_SHORT);                                                          \
			spin_now_ns = thread_cpu_ns();                                             \
		}                                                                                  \
		spin_own_ns += spin_now_ns - spin_begin_ns;                                        \
	} while (0)
