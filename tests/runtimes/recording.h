/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recorded reads of a process's memory, and samples that were walked with them (record.c). The file
 * is compressed by gzip, and little endian:
 *
 *	u64 image; u32 number of ranges, u32 number of samples
 *	ranges: u64 address, u32 n, n bytes; sorted
 *	samples: u64 registers[17] by DWARF number, u32 n, n bytes of stack
 *
 * recorded-*.h walk them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cursor.h"

enum { RECORDING_MAX_RANGES = 65536, RECORDING_MAX_SAMPLES = 256, RECORDING_REGS = 17 };

struct recording {
	uint64_t image;
	struct recorded_range {
		uint64_t at;
		uint32_t n;
		const uint8_t *bytes;
	} * ranges;
	uint32_t n_ranges, n_samples;
	struct recorded_walk {
		uint64_t r[RECORDING_REGS];
		uint32_t n;
		const uint8_t *stack;
	} samples[RECORDING_MAX_SAMPLES];
};

/* Points into the bytes. false: damaged; what came before is there. */
static inline bool recording_parse(struct recording *ret, const uint8_t *bytes, size_t n)
{
	struct cursor c = cursor_make(bytes, n);
	uint32_t n_ranges, n_samples;

	memset(ret, 0, sizeof(*ret));
	ret->image = cursor_u64(&c);
	n_ranges = cursor_u32(&c);
	n_samples = cursor_u32(&c);
	if (n_ranges > RECORDING_MAX_RANGES || n_samples > RECORDING_MAX_SAMPLES)
		return false;
	ret->ranges = calloc(n_ranges + 1, sizeof(*ret->ranges));
	if (!ret->ranges)
		abort();
	for (; ret->n_ranges < n_ranges; ret->n_ranges++) {
		struct recorded_range *r = &ret->ranges[ret->n_ranges];

		r->at = cursor_u64(&c);
		r->n = cursor_u32(&c);
		r->bytes = cursor_take(&c, r->n);
		if (!r->bytes)
			return false;
	}
	for (; ret->n_samples < n_samples; ret->n_samples++) {
		struct recorded_walk *s = &ret->samples[ret->n_samples];

		cursor_read(&c, s->r, sizeof(s->r));
		s->n = cursor_u32(&c);
		s->stack = cursor_take(&c, s->n);
		if (!s->stack)
			return false;
	}
	return true;
}

/* As struct memory's. Only what lies in one range can be read. */
static inline bool recording_read(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct recording *r = ctx;
	uint32_t low = 0, high = r->n_ranges;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->ranges[middle].at <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	low--;
	if (address - r->ranges[low].at > r->ranges[low].n ||
	    n > r->ranges[low].n - (address - r->ranges[low].at))
		return false;
	memcpy(to, r->ranges[low].bytes + (address - r->ranges[low].at), n);
	return true;
}

static inline void recording_deinit(struct recording *r)
{
	free(r->ranges);
	r->ranges = NULL;
}
