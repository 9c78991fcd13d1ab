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
	uint64_t made_ns;	/* CLOCK_MONOTONIC */
	uint64_t time_unix_ns;	/* when it came */
	unsigned int refs;	/* references to the bytes */
	unsigned int unsettled; /* destinations that have neither sent, dropped nor spooled it */
	uint64_t n_bytes;	/* before compression */
	uint32_t n_halvings;	/* that made it */
	struct {
		uint8_t *bytes; /* NULL: no destination uses this encoding */
		size_t n;
	} bodies[N_ENCODINGS];
	struct payload *whole; /* if this is a half: a reference to the whole, which it settles */
	bool told;	       /* it was on disk, and its sender knows that it is settled */
	struct payload *next;  /* in the list of settled payloads */
};

/*
 * Reads the payload from the start of fd, which stays the caller's, in the wanted encodings, a bit
 * each. *ret has one reference. 0; -EFBIG: more than PAYLOAD_MAX_BYTES; -ENODATA: it is empty;
 * -EIO: it is shorter than its size; another -errno.
 */
int payload_new(struct payload **ret, int fd, unsigned int encodings);
/* Makes a payload of n bytes in memory, in one encoding. The same outcomes. */
int payload_pack(struct payload **ret, const uint8_t *bytes, size_t n, enum encoding encoding);
void payload_free(struct payload *p);
/* Drops a reference to the bytes. NULL: does nothing. */
void payload_release(struct payload *p);
/* A destination has sent, dropped or spooled p. If all destinations have, p, or the payload that it
 * is half of, becomes the first of *settled, with a reference. */
void payload_settle(struct payload *p, struct payload **settled);

static inline const uint8_t *payload_body(const struct payload *p, enum encoding encoding,
					  size_t *ret_n)
{
	*ret_n = p->bodies[encoding].n;
	return p->bodies[encoding].bytes;
}
