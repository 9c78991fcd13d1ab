/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The local store: profiles of this host kept on this host, for perfwalk report --last. A directory
 * of files TIME-SUM.otlp.gz: the time the payload came (nanoseconds since 1970, 20 digits, which is
 * also the order of the names), its CRC-32, and in the file one ProfilesData message, gzipped. Any
 * tool that reads OTLP may read them; it passes over field 15 (proto/kept-memory.proto).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct store;

struct store_limits {
	uint64_t max_bytes;  /* of all files; beyond it the oldest are removed */
	uint64_t max_age_ns; /* 0: no limit */
};

/* Takes dir_fd, a directory that is ours alone; path: its name in the log. Deletes half-written
 * files. 0 or -errno. */
int store_open(struct store **ret, int dir_fd, const char *path, const struct store_limits *limits);
struct store *store_free(struct store *s);
DEFINE_CLEANUP(struct store *, store_free)

/*
 * Keeps the payload in fd, and after it the bytes of more_fd (-1: none). Reads both from their
 * starts; they stay the caller's. A payload that is handed over again is not kept twice. 0: it is
 * safe on disk, and the limits hold; -errno: it is not kept, which is logged once, and again with
 * the number of lost samples when a write succeeds.
 */
int store_put(struct store *s, int fd, int more_fd, uint64_t n_samples);

struct store_stats {
	uint64_t n_files, n_bytes; /* now */
	uint64_t n_samples_lost;   /* since the start: of payloads that could not be kept */
};
struct store_stats store_stats(const struct store *s);
