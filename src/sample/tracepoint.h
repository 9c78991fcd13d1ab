/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tracepoints from tracefs: their numbers, which differ from boot to boot, and the offsets of the
 * fields in their payload (PERF_SAMPLE_RAW), which differ between kernels.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Larger than the format file of any tracepoint. */
#define TRACEPOINT_MAX_FORMAT_BYTES 16384

struct tracepoint_field {
	uint32_t offset, size; /* bytes, from the start of the payload */
	bool is_signed;
};

/* A file of tracefs, wherever that is mounted: a descriptor; -ENODEV: it is not mounted, or hidden
 * from this user; other -errno. */
int tracefs_open(const char *file, int flags);
/* The kernel was booted with lockdown=confidentiality, which leaves tracefs empty. It does not
 * change what may be sampled: LOCKDOWN_PERF is for registers at interrupts, which we do not ask
 * for. */
bool tracefs_is_locked_down(void);
/*
 * Reads events/SUBSYSTEM/NAME/FILE of tracefs ("id", "format"), wherever that is mounted. name:
 * "SUBSYSTEM:NAME". Returns the length of the text, which is terminated; -ENOENT: no such
 * tracepoint; -ENODEV: tracefs is not mounted, or hidden from this user; -E2BIG: the text does not
 * fit; other -errno.
 */
int tracepoint_read(const char *name, const char *file, char *buf, size_t size);

/* Finds a field by its name in the text of a format file. false: none, or the text is wrong. */
bool tracepoint_find_field(const char *format, const char *name, struct tracepoint_field *ret);

/*
 * Reads the name of the next field in the text of a format file, from *at on, and moves *at after
 * it. false: no more fields. Skips names that do not fit.
 */
bool tracepoint_next_field(const char **at, char *ret_name, size_t n_name);

/* Is it an integer of 4 or 8 bytes inside of a payload of n bytes? */
static inline bool tracepoint_fits(const struct tracepoint_field *f, size_t n)
{
	return (f->size == sizeof(uint32_t) || f->size == sizeof(uint64_t)) && f->offset <= n &&
	       f->size <= n - f->offset;
}

/* The value of a field that fits. */
static inline int64_t tracepoint_value(const struct tracepoint_field *f, const uint8_t *payload)
{
	int64_t value;
	uint32_t word;

	if (f->size == sizeof(value)) {
		memcpy(&value, payload + f->offset, sizeof(value));
		return value;
	}
	memcpy(&word, payload + f->offset, sizeof(word));
	return f->is_signed ? (int64_t)(int32_t)word : (int64_t)word;
}

/* Both. false: it does not fit. */
static inline bool tracepoint_get(const struct tracepoint_field *f, const uint8_t *payload,
				  size_t n, int64_t *ret)
{
	if (!tracepoint_fits(f, n))
		return false;
	*ret = tracepoint_value(f, payload);
	return true;
}
