/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of another process: reads through a callback, within a budget. The process may run on
 * meanwhile and write anything there, so the bytes are untrusted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct memory {
	/* Copies n bytes at address to ret; false: some cannot be read. */
	bool (*read)(void *ctx, uint64_t address, void *ret, size_t n);
	void *ctx;
	/* The rest of the budget; the caller sets both for each walk. */
	uint32_t reads_left;
	uint64_t bytes_left;
};

/* Reads n bytes. false: they cannot be read, or the budget is used up; then ret is zeroed. */
bool memory_read(struct memory *m, uint64_t address, void *ret, size_t n);

static inline uint64_t memory_u64(struct memory *m, uint64_t address)
{
	uint64_t v;

	(void)memory_read(m, address, &v, sizeof(v));
	return v;
}

/* The word at offset n of bytes that were read. */
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

/* Reads the text at address up to its 0, cut to size; ret is terminated. false: it cannot be
 * read. */
bool memory_text(struct memory *m, uint64_t address, char *ret, size_t size);

/*
 * Reads m page by page and keeps the pages: for many small reads of memory that does not change,
 * such as constant data. Takes about 300 KiB; free it with free(). NULL: no memory.
 */
struct memory_pages;
struct memory_pages *memory_pages_new(struct memory *m);
/* A memory that reads through the pages, within the budget of m. Borrowed from p. */
struct memory *memory_of_pages(struct memory_pages *p);
