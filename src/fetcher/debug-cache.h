/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debug files by build id in one directory: each whole or not there, bounded in bytes, those not
 * used for longest first to go; and of which build ids it is known that there is none. All of it is
 * in the names of the files (IDENTITY.debug, IDENTITY.missing, IDENTITY.PID.part), so that several
 * processes can use the directory at a time.
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
	uint64_t max_bytes, missing_ns; /* of all files; for how long a miss is believed */
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
/* A file to be written, that only debug_cache_commit() makes visible: a descriptor of the caller's,
 * or -errno; -ENOSPC: only the reserve of free space is left (util/disk-reserve.h). Ends with
 * commit or abandon. */
int debug_cache_begin(const struct debug_cache *c, const struct debug_id *id);
/* fd is whole: it goes to disk, takes its name, and others go beyond max_bytes. 0 or -errno,
 * abandoned then. */
int debug_cache_commit(struct debug_cache *c, const struct debug_id *id, int fd);
void debug_cache_abandon(const struct debug_cache *c, const struct debug_id *id);
/* Nobody has it; what goes in debug_cache_trim() goes. 0 or -errno. */
int debug_cache_put_missing(struct debug_cache *c, const struct debug_id *id);
/* Those not used for longest go beyond max_bytes; misses that are not believed any more or
 * are the oldest of more than 4096, and what a process that was killed had begun, go too. */
void debug_cache_trim(struct debug_cache *c);
