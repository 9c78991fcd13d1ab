/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recorded reads of a process's memory, and samples that were walked with them (record.c). The file
 * is compressed by gzip, and little endian:
 *
 *	u64 image; u32 number of ranges, u32 number of samples
 *	ranges: u64 address, u32 n, n bytes; sorted
 *	samples: u64 registers[17] (recording_register()), u32 n, n bytes of stack
 *
 * recorded-*.h walk them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cursor.h"

enum {
	RECORDING_MAX_RANGES = 65536,
	RECORDING_MAX_SAMPLES = 256,
	RECORDING_REGS = 17,
	RECORDING_PAGE = 4096
};

/* The DWARF number of the i-th recorded register; the frame pointer, the stack pointer and the pc
 * have the same places everywhere. RECORDED_AARCH64: for tests of what was recorded there. */
static inline uint8_t recording_register(size_t i)
{
#if defined(__aarch64__) || defined(RECORDED_AARCH64)
	static const uint8_t registers[RECORDING_REGS] = {0,  1,  2,  3,  12, 13, 29, 31, 16,
							  17, 19, 20, 21, 22, 28, 30, 32};

	return registers[i];
#else
	return (uint8_t)i;
#endif
}
enum { RECORDED_FP = 6, RECORDED_SP = 7, RECORDED_PC = 16 };

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

/* How many ranges begin at an address or before it. */
static inline uint32_t recording_find(const struct recording *r, uint64_t address)
{
	uint32_t low = 0, high = r->n_ranges;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->ranges[middle].at <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A whole page: what was not recorded of it is zeros. */
static inline bool recording_read_page(const struct recording *r, uint64_t page, uint8_t *to)
{
	bool any = false;

	memset(to, 0, RECORDING_PAGE);
	if (page > INT64_MAX)
		return false;
	for (uint32_t i = recording_find(r, page + RECORDING_PAGE - 1); i-- > 0;) {
		const struct recorded_range *range = &r->ranges[i];
		uint64_t from = range->at > page ? range->at : page, end = range->at + range->n;

		/* Those that were taken away; damaged ones are not sorted. */
		if (range->n == 0 || from - page >= RECORDING_PAGE)
			continue;
		if (end <= page)
			break;
		end = end < page + RECORDING_PAGE ? end : page + RECORDING_PAGE;
		memcpy(to + (from - page), range->bytes + (from - range->at), end - from);
		any = true;
	}
	return any;
}

/* As struct memory's. Only what lies in one range can be read, or a page that has one. */
static inline bool recording_read(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct recording *r = ctx;
	uint32_t low = recording_find(r, address);

	if (n == RECORDING_PAGE && address % RECORDING_PAGE == 0)
		return recording_read_page(r, address, to);
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
