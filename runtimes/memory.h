/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of a process that is being looked at: reads through a callback, within a budget. The
 * process runs on meanwhile, and what it has there is whatever it likes: what was read is never
 * more than bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct memory {
	/* Copies n bytes at address to ret; false: not all of them can be read. */
	bool (*read)(void *ctx, uint64_t address, void *ret, size_t n);
	void *ctx;
	/* What may still be read; the caller sets both anew for each walk. */
	uint32_t reads_left;
	uint64_t bytes_left;
};

/* false: it cannot be read, or the budget is spent; ret is all zeros then. */
bool memory_read(struct memory *m, uint64_t address, void *ret, size_t n);

static inline uint64_t memory_u64(struct memory *m, uint64_t address)
{
	uint64_t v;

	(void)memory_read(m, address, &v, sizeof(v));
	return v;
}

/* Words of what was read, n bytes behind its beginning. */
static inline uint64_t memory_u64_of(const uint8_t *bytes, int32_t n)
{
	uint64_t v;

	memcpy(&v, bytes + n, sizeof(v));
	return v;
}

static inline uint32_t memory_u32_of(const uint8_t *bytes, int32_t n)
{
	uint32_t v;

	memcpy(&v, bytes + n, sizeof(v));
	return v;
}

/* The text at address up to its 0, cut to fit, as a string; false: it cannot be read. */
bool memory_text(struct memory *m, uint64_t address, char *ret, size_t size);

/*
 * Reads of m in pages that are kept: for many small reads near each other while the process may be
 * taken to stand still, such as its constant data. About 300 KiB; free().
 */
struct memory_pages;
struct memory_pages *memory_pages_new(struct memory *m);
/* A memory that reads through the pages, with the budget of m; borrowed. */
struct memory *memory_of_pages(struct memory_pages *p);
