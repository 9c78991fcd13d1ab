/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The set-up of the screen, and its limits for the broker. */
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "src/process/message.h"
#include "src/process/setup.h"

#define SCREEN_MAX_EVENTS 8

/* For perfwalk top: the first view, and the terminal. */
struct setup_screen {
	struct setup_common common;
	struct termios termios; /* the terminal's original settings */
	uint64_t window_ns;
	uint32_t rate_hz, n_cpus;
	uint32_t iterations; /* exit after so many tables; 0: never */
	uint32_t view, sort; /* enum top_view_kind, enum top_sort */
	uint32_t width;	     /* batch: columns */
	/* The events, a table each: "page-faults (each one)". n_events 0: CPU time at rate_hz. */
	uint32_t n_events;
	char events[SCREEN_MAX_EVENTS][112];
	uint32_t event;	 /* the first to be shown */
	bool one_event;	 /* batch: and no other */
	bool confidence; /* with the intervals of the shares */
	bool no_native;	 /* without the native functions of interpreters */
	bool batch;	 /* tables to standard output, one after the other */
	bool color;
};

_Static_assert(sizeof(struct setup_screen) <= PROTOCOL_BLOB_MAX, "fits a message");
