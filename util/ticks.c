/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "util/clock.h"
#include "util/ticks.h"

#define MAX_MOMENTS 4
/* Samples until the moments have come round: to be in step, and for a rate of our choice. */
#define STEPS	    1000
#define FEW_SAMPLES 128

uint64_t ticks_ns(void)
{
	struct timespec t;

	/* This clock is read at the ticks. */
	return clock_getres(CLOCK_MONOTONIC_COARSE, &t) == 0
		       ? (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec
		       : 0;
}

/* After so many samples the moments, MAX_MOMENTS at most, have been everywhere. */
static uint64_t n_until_round(uint64_t period_ns, uint64_t tick_ns)
{
	uint64_t most = 0;

	for (uint64_t n = 1; n <= MAX_MOMENTS; n++) {
		uint64_t off = n * period_ns % tick_ns;

		off = off < tick_ns - off ? off : tick_ns - off;
		if (off == 0)
			return UINT64_MAX;
		most = tick_ns / off > most ? tick_ns / off : most;
	}
	return most;
}

bool ticks_in_step(uint64_t period_ns, uint64_t tick_ns)
{
	return period_ns > 0 && tick_ns > 0 && n_until_round(period_ns, tick_ns) > STEPS;
}

uint32_t ticks_rate_beside(uint32_t rate_hz, uint64_t tick_ns)
{
	if (rate_hz == 0 || !ticks_in_step(NSEC_PER_SEC / rate_hz, tick_ns))
		return rate_hz;
	for (uint32_t hz = rate_hz - 1; hz > 0 && hz >= rate_hz - rate_hz / 8; hz--) {
		if (n_until_round(NSEC_PER_SEC / hz, tick_ns) <= FEW_SAMPLES)
			return hz;
	}
	return rate_hz;
}
