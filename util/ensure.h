/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Assertions about our own invariants, never about input. They are checked if WITH_CHECKS is
 * defined (configure --enable-checks or --enable-sanitizers): the process prints the condition that
 * does not hold, and aborts. Otherwise they are compiled but cost nothing.
 */
#ifdef WITH_CHECKS
#include <stdio.h>
#include <stdlib.h>

#define ensure(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "perfwalk: %s:%d: %s: does not hold: %s\n",          \
				      __FILE__, __LINE__, __func__, #cond);                        \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
#else
#define ensure(cond)                                                                               \
	do {                                                                                       \
		if (0)                                                                             \
			(void)(cond);                                                              \
	} while (0)
#endif
