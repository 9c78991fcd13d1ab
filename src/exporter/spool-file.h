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
	uint32_t crc_body, n_halvings;
	enum encoding encoding;
	char destination[SPOOL_DESTINATION_MAX + 1];
};

/* NAME = 20 digits and a suffix. Returns name. */
const char *spool_file_name(char name[SPOOL_NAME_MAX], uint64_t seq, const char *suffix);
/* Reads the number in a name with that suffix. false: not such a name. */
bool spool_file_parse_name(const char *name, const char *suffix, uint64_t *ret_seq);

/* The size of the file with that header, in bytes. */
uint64_t spool_file_bytes(const struct spool_header *h);

/* The checksum of a body, as in the header. */
uint32_t spool_file_crc(const uint8_t *body, size_t n);

/* Writes the whole file. Once the directory is flushed, the file survives a crash of the machine.
 * 0; -errno: there is no file. */
int spool_file_write(int dir_fd, uint64_t seq, const struct spool_header *h, const uint8_t *body);

/*
 * Reads and checks the header, and with ret_body the body (which the caller frees) and its
 * checksum. 0; -EBADMSG: it is not a file of the spool, or damaged; -ENOENT; another -errno.
 */
int spool_file_read(int dir_fd, uint64_t seq, struct spool_header *h, uint8_t **ret_body);
