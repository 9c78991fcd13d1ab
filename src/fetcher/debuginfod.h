/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debug files from debuginfod servers (debuginfod(8): GET /buildid/IDENTITY/debuginfo) into a
 * cache. Asks the servers one after the other, in the order in which they are given, a few files at
 * a time, over libcurl in the caller's event loop; nothing blocks but writing to the disk. A server
 * that does not answer is left alone for a while, and what only it could have is asked for again
 * then.
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
	const char *cache_path; /* for messages; borrowed for as long as it lives */
	uint64_t max_cache_bytes, max_file_bytes;
	uint64_t timeout_ns; /* of one download */
	/* Whether it is the file with that build id; false: the server has another one there. */
	bool (*belongs)(int fd, const struct debug_id *id);
	/* A request has an outcome: the file is in the cache now, or is not available, or not yet;
	 * then it may still follow. Not called from debuginfod_request(). */
	void (*done)(void *ctx, const struct debug_id *id, bool found);
	void *ctx;
};

struct debuginfod_stats {
	uint64_t fetched, bytes; /* files; as they came, all of them */
	uint64_t missing;	 /* that no server has, or none that fits the limits */
	uint64_t failures;	 /* requests without an answer, or with one that says nothing */
	uint64_t refused;	 /* with too many under way */
	uint64_t evicted;	 /* by this process */
};

/* Loads libcurl. 0; -ENOENT or -EIO with a message in error; another -errno. */
int debuginfod_new(struct debuginfod **ret, struct loop *loop,
		   const struct debuginfod_options *options, const char *version, char *error,
		   size_t n_error);
struct debuginfod *debuginfod_free(struct debuginfod *d);
DEFINE_CLEANUP(struct debuginfod *, debuginfod_free)

/* Asks for a file, unless that is under way; done() follows. */
void debuginfod_request(struct debuginfod *d, const struct debug_id *id);
/* Valid until the next call. */
const struct debuginfod_stats *debuginfod_stats(struct debuginfod *d);
