/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which windows have come, and what is missing between them. Each begins where the one before it
 * ended: what lies between two was with a profiler that died, or in windows that it gave up. A
 * window that was settled before is known by its place.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

struct arrivals {
	struct sample_place expected;	       /* where the next window begins */
	uint64_t n_dropped[STATUS_MAX_EVENTS]; /* as the profiler said last */
};

/* Samples of an event that the kernel took and that come in no window. */
struct arrivals_gap {
	uint64_t samples, filtered, lost; /* all; of these not wanted; in the kernel besides */
	uint64_t dropped, died;		  /* of those wanted: given up by a profiler; others */
};

/* A new profiler counts anew what it gives up. */
void arrivals_new_profiler(struct arrivals *a);
/* A window has come: what is missing in front of it, for each of STATUS_MAX_EVENTS. false: it came
 * before, and is to be ignored. */
bool arrivals_window(struct arrivals *a, const struct message *window, struct arrivals_gap *ret);
/* Before that place, of all events. */
uint64_t arrivals_samples_at(const struct sample_place *p);
/* How many samples are behind us, in windows or missing. */
uint64_t arrivals_n_samples(const struct arrivals *a);
/* No window comes any more, and the profilers had come that far. */
void arrivals_end(struct arrivals *a, const struct sample_place *end, struct arrivals_gap *ret);
