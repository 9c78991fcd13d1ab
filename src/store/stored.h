/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Profiles of the local store as one input of report. */
#include <stdbool.h>
#include <stdint.h>

/*
 * Calls fn for each of the store's files since a time, oldest first. name is borrowed, and so is
 * fd, of a regular file of that many bytes. fn returns 0, or -errno, which ends this. *ret_n:
 * number of files. 0; -errno.
 */
int stored_each(const char *path, uint64_t since_unix_ns,
		int (*fn)(void *ctx, const char *name, int fd, uint64_t bytes), void *ctx,
		uint32_t *ret_n);
/*
 * The store's files since a time, oldest first, each after its length (four bytes, big endian), in
 * a memfd. The descriptor; -ENOENT: no store, or no files since then; -EFBIG: more than max_bytes;
 * -errno. *ret_n: number of files.
 */
int stored_open(const char *path, uint64_t since_unix_ns, uint64_t max_bytes, uint32_t *ret_n);
/* Is a daemon running that keeps its profiles there? */
bool stored_in_use(const char *path);
