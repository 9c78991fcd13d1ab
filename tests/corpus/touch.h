/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which bytes of some memory does a piece of code read? The memory is made inaccessible; each fault
 * is noted and the one instruction let through (trap flag). x86_64, one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOUCH_GRANULE = 16, TOUCH_MAX_RANGES = 512 };

struct touch_range {
	uint8_t *start; /* on a page's boundary */
	size_t n;
	uint8_t *bits; /* a bit a granule; the caller's, (n / granule + 8) / 8 + 1 bytes */
};

/* Between the two each read of the ranges sets bits. No other code may handle SIGSEGV or SIGTRAP.
 */
void touch_begin(const struct touch_range *ranges, size_t n);
void touch_end(void);
/* Marks what is known to be needed. */
void touch_mark(const struct touch_range *r, uint64_t offset, uint64_t n);
/* Takes the marks away of whole granules. */
void touch_clear(const struct touch_range *r, uint64_t offset, uint64_t n);
bool touch_is_marked(const struct touch_range *r, uint64_t offset);
