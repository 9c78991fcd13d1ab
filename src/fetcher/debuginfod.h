/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debug files from debuginfod servers (debuginfod(8): GET /buildid/IDENTITY/debuginfo) into a
 * cache. Asks the servers in their order, a few files at a time, with libcurl in the caller's event
 * loop; only writing to disk blocks. A server that does not answer is skipped for a while; files
 * that only it may have are requested again later.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/fetcher/debug-cache.h"
#include "util/cleanup.h"

struct debuginfod;
struct loop;

struct debuginfod_options {
	const char *const *urls; /* n; http or https; borrowed for debuginfod_new() only */
	size_t n_urls;
	int cache_fd;		/* of a directory; stays the caller's */
	const char *cache_path; /* for messages; borrowed until debuginfod_free() */
	uint64_t max_cache_bytes, max_file_bytes;
	uint64_t timeout_ns; /* of one download */
	/* Is it the file with that build id? false: the server sent another one. */
	bool (*belongs)(int fd, const struct debug_id *id);
	/* Called with the outcome of a request: the file is in the cache, or is not available (it
	 * may still follow). Not called from debuginfod_request(). */
	void (*done)(void *ctx, const struct debug_id *id, bool found);
	void *ctx;
};

struct debuginfod_stats {
	uint64_t fetched, bytes; /* files; bytes of all downloads */
	uint64_t missing;	 /* no server has them, or they exceed the limits */
	uint64_t failures;	 /* requests without a usable answer */
	uint64_t refused;	 /* too many at once */
	uint64_t evicted;	 /* by this process */
};

/* Loads libcurl. 0; -ENOENT or -EIO with a message in error; another -errno. */
int debuginfod_new(struct debuginfod **ret, struct loop *loop,
		   const struct debuginfod_options *options, const char *version, char *error,
		   size_t n_error);
struct debuginfod *debuginfod_free(struct debuginfod *d);
DEFINE_CLEANUP(struct debuginfod *, debuginfod_free)

/* Requests a file, unless it is already requested; done() follows. */
void debuginfod_request(struct debuginfod *d, const struct debug_id *id);
/* Valid until the next call. */
const struct debuginfod_stats *debuginfod_stats(struct debuginfod *d);
