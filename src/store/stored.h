/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Profiles of the local store as one input of report. */
#include <stdbool.h>
#include <stdint.h>

/*
 * The store's files that came at or after a time, oldest first, each behind its length (four bytes,
 * big endian), in a memfd. The descriptor; -ENOENT: there is no store, or nothing in it for that
 * time; -EFBIG: it is more than max_bytes; -errno. *ret_n: files.
 */
int stored_open(const char *path, uint64_t since_unix_ns, uint64_t max_bytes, uint32_t *ret_n);
/* A daemon runs now that keeps its profiles there. */
bool stored_in_use(const char *path);
