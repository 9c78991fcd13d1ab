/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The form of one spool file and how it is written and read; for spool.c only. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/exporter/encoding.h"

#define SPOOL_NAME_MAX	       32 /* of a file, with its 0 */
#define SPOOL_DESTINATION_MAX  255
#define SPOOL_SUFFIX	       ".otlp"
#define SPOOL_SUFFIX_TEMPORARY ".tmp"
#define SPOOL_SUFFIX_BAD       ".bad"

struct spool_header {
	uint64_t id, n_samples, time_unix_ns, n_body;
	uint32_t crc_body;
	enum encoding encoding;
	char destination[SPOOL_DESTINATION_MAX + 1];
};

/* NAME = 20 digits and a suffix. Returns name. */
const char *spool_file_name(char name[SPOOL_NAME_MAX], uint64_t seq, const char *suffix);
/* The number in a name with that suffix. */
bool spool_file_parse_name(const char *name, const char *suffix, uint64_t *ret_seq);

/* Of the file for a header. */
uint64_t spool_file_bytes(const struct spool_header *h);

/* The sum of a body, as the header holds it. */
uint32_t spool_file_crc(const uint8_t *body, size_t n);

/* Writes the whole file; once the directory is flushed, it survives the machine. -errno: there is
 * none. */
int spool_file_write(int dir_fd, uint64_t seq, const struct spool_header *h, const uint8_t *body);

/*
 * Reads and checks the header, and with ret_body the body (the caller's to free) and its sum. 0;
 * -EBADMSG: this is no file of ours, or a damaged one; -ENOENT; another -errno.
 */
int spool_file_read(int dir_fd, uint64_t seq, struct spool_header *h, uint8_t **ret_body);
