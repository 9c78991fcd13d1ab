/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of window-write.c and window-read.c: how a window lies in its file. Its header, then its
 * sections one after the other, each padded to 8 bytes. */
#include <stdint.h>

#include "src/profile/profile.h"

#define WINDOW_MAGIC UINT64_C(0x36776e776b6c6177) /* "walkwnw6" */

enum window_section {
	SECTION_STRINGS, /* texts with their terminating 0, in the order of their ids */
	SECTION_MODULES,
	SECTION_PROCESSES,
	SECTION_THREADS,
	SECTION_FUNCTIONS, /* of frames that come with names, like the lines */
	SECTION_LINES,
	SECTION_FRAMES,
	SECTION_STACKS,
	SECTION_STACK_FRAMES,
	SECTION_TYPES,
	SECTION_SAMPLES, /* type by type */
	SECTION_RESIDENTS,
	SECTION_KILLS,
	SECTION_VICTIMS,
	N_SECTIONS
};

struct window_type {
	uint64_t period_ns, period_events;
	strid event, unit;
	uint32_t weighted, rate_hz, stack_bytes, n_samples;
	double variance;
	uint64_t counters[PROFILE_N_COUNTERS];
};

/* The item sizes in the header check that both sides have the same structs. */
extern const uint32_t window_item_sizes[N_SECTIONS];

struct window_header {
	uint64_t magic, total_bytes;
	uint64_t start_unix_ns, end_unix_ns;
	uint64_t counters[PROFILE_N_COUNTERS];
	uint32_t n_strings, host_name, kernel_release, n_cpus;
	struct {
		uint32_t n, item_bytes;
	} sections[N_SECTIONS];
};

static inline uint64_t window_padded(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}
