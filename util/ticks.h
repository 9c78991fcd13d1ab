/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel chooses at its ticks, so many a second, which thread runs. Samples at a fixed distance
 * may fall at a few moments between two ticks only, and see again and again what runs then. At
 * nearly such a distance the moments move on, and soon have been everywhere.
 */
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds between this kernel's ticks; 0: not known. */
uint64_t ticks_ns(void);
/* Samples at that distance fall at a few moments between ticks, for so long that a program may have
 * ended by then. */
bool ticks_in_step(uint64_t period_ns, uint64_t tick_ns);
#define TICKS_LEAST_HZ 11 /* from here on there is always one: */
/* The highest rate up to rate_hz whose samples are not in step, and an eighth below it at most; if
 * there is none, such as of 1 Hz, rate_hz. */
uint32_t ticks_rate_beside(uint32_t rate_hz, uint64_t tick_ns);
