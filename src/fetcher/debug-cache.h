/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debug files by build id in one directory, each complete or absent. Bounded in bytes; the least
 * recently used are removed first. It also remembers build ids without a debug file. All state is
 * in the names of the files (IDENTITY.debug, IDENTITY.missing, IDENTITY.PID.part), so that several
 * processes can use the directory at the same time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_CACHE_ID_MAX 64

struct debug_id {
	uint32_t n; /* 1 .. DEBUG_CACHE_ID_MAX */
	uint8_t bytes[DEBUG_CACHE_ID_MAX];
};

struct debug_cache {
	int dir_fd;			/* borrowed */
	uint64_t max_bytes, missing_ns; /* of all files; how long a miss is valid */
	uint64_t n_evicted;
};

enum debug_cache_answer { DEBUG_CACHE_UNKNOWN, DEBUG_CACHE_FOUND, DEBUG_CACHE_MISSING };

#define DEBUG_ID_HEX_MAX (2 * DEBUG_CACHE_ID_MAX + 1)
/* In hexadecimal digits; returns buf. */
const char *debug_id_hex(const struct debug_id *id, char buf[DEBUG_ID_HEX_MAX]);
static inline bool debug_id_equal(const struct debug_id *a, const struct debug_id *b)
{
	return a->n == b->n && __builtin_memcmp(a->bytes, b->bytes, a->n) == 0;
}

enum debug_cache_answer debug_cache_find(const struct debug_cache *c, const struct debug_id *id);
/* Opens a new file for writing, which debug_cache_commit() makes visible. The caller owns the
 * descriptor; -errno; -ENOSPC: only the reserve of free space is left (util/disk-reserve.h). End it
 * with commit or abandon. */
int debug_cache_begin(const struct debug_cache *c, const struct debug_id *id);
/* fd is complete: writes it to disk, gives it its name, and removes others beyond max_bytes. 0, or
 * -errno and it is abandoned. */
int debug_cache_commit(struct debug_cache *c, const struct debug_id *id, int fd);
void debug_cache_abandon(const struct debug_cache *c, const struct debug_id *id);
/* Remembers that no server has it, and trims the cache. 0 or -errno. */
int debug_cache_put_missing(struct debug_cache *c, const struct debug_id *id);
/* Removes the least recently used files beyond max_bytes, expired misses and the oldest beyond
 * 4096, and unfinished files of killed processes. */
void debug_cache_trim(struct debug_cache *c);
