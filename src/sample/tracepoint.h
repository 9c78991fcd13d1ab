/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tracepoints as tracefs describes them: numbers that differ from boot to boot, and where the
 * fields of their payload (PERF_SAMPLE_RAW) stand, which differs between kernels.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than the longest format of any tracepoint. */
#define TRACEPOINT_MAX_FORMAT_BYTES 16384

struct tracepoint_field {
	uint32_t offset, size; /* bytes, from the start of the payload */
	bool is_signed;
};

/* A file of tracefs, wherever that is mounted: a descriptor; -ENODEV: it is not mounted, or hidden
 * from this user; other -errno. */
int tracefs_open(const char *file, int flags);
/*
 * Reads events/SUBSYSTEM/NAME/FILE of tracefs ("id", "format"), wherever that is mounted. name:
 * "SUBSYSTEM:NAME". The text, terminated, of that many bytes; -ENOENT: there is no such
 * tracepoint; -ENODEV: tracefs is not mounted, or hidden from this user; -E2BIG: it does not fit;
 * other -errno.
 */
int tracepoint_read(const char *name, const char *file, char *buf, size_t size);

/* The field of that name in the text of a format file. false: it has none, or contradicts itself.
 */
bool tracepoint_find_field(const char *format, const char *name, struct tracepoint_field *ret);

/*
 * The first field in the text of a format file, from *at on: its name, and *at behind it. false:
 * none is left. Names that do not fit are passed over.
 */
bool tracepoint_next_field(const char **at, char *ret_name, size_t n_name);

/* A whole number of 4 or 8 bytes out of a payload. false: it does not reach so far. */
bool tracepoint_get(const struct tracepoint_field *f, const uint8_t *payload, size_t n,
		    int64_t *ret);
