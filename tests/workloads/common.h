/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every workload shares. Functions whose names a test looks for are KNOWN: never inlined,
 * cloned or merged. A call that must stay a real frame is followed by KEEP_FRAME, so that the
 * compiler cannot turn it into a jump.
 */
#include <stdint.h>

#define KNOWN	     __attribute__((noinline, noclone, used))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* Burns CPU in the caller's own frame. */
#define SPIN(n)                                                                                    \
	do {                                                                                       \
		for (uint64_t spin_i = 0; spin_i < (n); spin_i++)                                  \
			__asm__ volatile("" : "+r"(spin_i));                                       \
	} while (0)

#define SPIN_SHORT 20000
