/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the broker tells the screen at its start, and what it has to know of it. */
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "src/process/message.h"
#include "src/process/setup.h"

#define SCREEN_MAX_EVENTS 6

/* Of perfwalk top: what it shows first, and on what. */
struct setup_screen {
	struct setup_common common;
	struct termios termios; /* of the terminal as it was */
	uint64_t window_ns;
	uint32_t rate_hz, n_cpus;
	uint32_t iterations; /* leave after so many tables; 0: never */
	uint32_t view, sort; /* enum top_view_kind, enum top_sort */
	uint32_t width;	     /* batch: columns */
	/* What is sampled, a table each, in their order: "page-faults (each one)". n_events 0: CPU
	 * time at rate_hz. */
	uint32_t n_events;
	char events[SCREEN_MAX_EVENTS][112];
	bool confidence; /* with the intervals of the shares */
	bool batch;	 /* tables to standard output, one after the other */
	bool color;
};

_Static_assert(sizeof(struct setup_screen) <= PROTOCOL_BLOB_MAX, "fits a message");
