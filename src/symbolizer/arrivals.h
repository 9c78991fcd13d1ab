/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which windows have come, and which samples are missing between them. Each window begins where the
 * previous one ended; samples between two were in a profiler that died, or in windows that it
 * dropped. A window that was settled before is recognised by its place.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

struct arrivals {
	struct sample_place expected;	       /* where the next window begins */
	uint64_t n_dropped[STATUS_MAX_EVENTS]; /* in the profiler's last window */
};

/* Samples of an event that no window has. */
struct arrivals_gap {
	uint64_t samples, filtered; /* that the kernel took; of these, excluded by the filter */
	uint64_t lost;		    /* lost in the kernel, in addition */
	/* Of the wanted ones: those in windows that a profiler dropped; those that died with it. */
	uint64_t dropped, died;
};

/* A new profiler has started: its count of dropped samples begins at 0. */
void arrivals_new_profiler(struct arrivals *a);
/* A window has come: sets ret, one for each of STATUS_MAX_EVENTS, to what is missing before it.
 * false: it came before; ignore it. */
bool arrivals_window(struct arrivals *a, const struct message *window, struct arrivals_gap *ret);
/* The number of samples before a place, of all events. */
uint64_t arrivals_samples_at(const struct sample_place *p);
/* The number of samples so far, in windows or missing. */
uint64_t arrivals_n_samples(const struct arrivals *a);
/* The last window has come, and the profilers ended at that place: sets ret to what is missing
 * since. */
void arrivals_end(struct arrivals *a, const struct sample_place *end, struct arrivals_gap *ret);
