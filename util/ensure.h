/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What always holds, said as code: an invariant of our own, never of what comes from outside.
 * Checked where WITH_CHECKS is defined (configure --enable-checks; --enable-sanitizers does so):
 * the process says what does not hold, and aborts. Elsewhere it costs nothing, and the condition is
 * only compiled.
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
