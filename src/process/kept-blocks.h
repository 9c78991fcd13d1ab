/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The blocks of memory in use that the profiler knows, in memory that outlives it: the next
 * profiler tells of them, too, though it does not know where they were allocated. A profiler may be
 * killed at any time, so each block is written and removed as one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

#define KEPT_BLOCKS_MAX 262144

struct kept_block {
	uint64_t address; /* never 0 */
	uint64_t table;	  /* in its process; 0: unknown */
	double bytes, objects;
	uint32_t pid, tid;
};

struct kept_blocks;

/* Makes the memory, which takes none until blocks are kept. Returns a descriptor for
 * kept_blocks_map(), or -errno. */
int kept_blocks_new(void);
/* fd stays the caller's. 0; -EBADMSG: not such a memory; -errno. */
int kept_blocks_map(int fd, struct kept_blocks **ret);
struct kept_blocks *kept_blocks_unmap(struct kept_blocks *k);
DEFINE_CLEANUP(struct kept_blocks *, kept_blocks_unmap)

/* Rows from 0 to KEPT_BLOCKS_MAX - 1. */
void kept_blocks_put(struct kept_blocks *k, uint32_t row, const struct kept_block *block);
void kept_blocks_remove(struct kept_blocks *k, uint32_t row);
/* false: the row is empty, or makes no sense. */
bool kept_blocks_get(const struct kept_blocks *k, uint32_t row, struct kept_block *ret);
/* Rows from this one on were never put. */
uint32_t kept_blocks_end(const struct kept_blocks *k);
