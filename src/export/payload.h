/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request body, shared by the queues of all destinations; compressed at most once. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAX_BYTES (64u << 20) /* before compression: the limit OTLP has clients keep */

struct payload {
	uint64_t id, n_samples;
	uint64_t time_unix_ns;	/* when it came */
	unsigned int refs;	/* who needs the bytes */
	unsigned int unsettled; /* destinations that have neither sent, dropped nor spooled it */
	uint8_t *raw, *gz;	/* either may be NULL when no destination wants it */
	size_t n_raw, n_gz;
	struct payload *whole; /* that this is half of, a reference; it is not settled before */
	bool told;	       /* of something on disk: settled for who gave it to us */
	struct payload *next;  /* of the settled ones */
};

/*
 * Reads the payload from fd, from its start, in the forms that are wanted; fd stays the caller's.
 * One reference. 0; -EFBIG beyond PAYLOAD_MAX_BYTES; -ENODATA when empty; -EIO when shorter than it
 * said; or another -errno.
 */
int payload_new(struct payload **ret, int fd, bool want_raw, bool want_gz);
/* Of n bytes in memory, in one form. The same. */
int payload_pack(struct payload **ret, const uint8_t *bytes, size_t n, bool gz);
/* What a compressed body was before: *ret is the caller's. 0; -EBADMSG; -EFBIG as above; -ENOMEM.
 */
int payload_unpack(const uint8_t *gz, size_t n_gz, uint8_t **ret, size_t *ret_n);
void payload_free(struct payload *p);

static inline const uint8_t *payload_body(const struct payload *p, bool gz, size_t *ret_n)
{
	*ret_n = gz ? p->n_gz : p->n_raw;
	return gz ? p->gz : p->raw;
}
