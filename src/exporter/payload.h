/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request body, shared by the queues of all destinations; compressed once for each encoding. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/exporter/encoding.h"

#define PAYLOAD_MAX_BYTES (64u << 20) /* before compression: the limit OTLP has clients keep */

struct payload {
	uint64_t id, n_samples;
	uint64_t made_ns;	/* by the monotonic clock */
	uint64_t time_unix_ns;	/* when it came */
	unsigned int refs;	/* who needs the bytes */
	unsigned int unsettled; /* destinations that have neither sent, dropped nor spooled it */
	uint64_t n_bytes;	/* before compression */
	struct {
		uint8_t *bytes; /* NULL when no destination wants it */
		size_t n;
	} bodies[N_ENCODINGS];
	struct payload *whole; /* that this is half of, a reference; it is not settled before */
	bool told;	       /* of something on disk: settled for who gave it to us */
	struct payload *next;  /* of the settled ones */
};

/*
 * Reads the payload from fd, from its start, in the encodings that are wanted, a bit each; fd stays
 * the caller's. One reference. 0; -EFBIG beyond PAYLOAD_MAX_BYTES; -ENODATA when empty; -EIO when
 * shorter than it said; or another -errno.
 */
int payload_new(struct payload **ret, int fd, unsigned int encodings);
/* Of n bytes in memory, in one encoding. The same. */
int payload_pack(struct payload **ret, const uint8_t *bytes, size_t n, enum encoding encoding);
void payload_free(struct payload *p);
/* The bytes are not needed any more by one of those who referred to p. NULL: nothing. */
void payload_release(struct payload *p);
/* One of the destinations has sent, dropped or spooled p. What is settled for all by that, p or the
 * payload that it is half of, is put first in *settled, with a reference. */
void payload_settle(struct payload *p, struct payload **settled);

static inline const uint8_t *payload_body(const struct payload *p, enum encoding encoding,
					  size_t *ret_n)
{
	*ret_n = p->bodies[encoding].n;
	return p->bodies[encoding].bytes;
}
