/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A payload that is too large for the server is sent in halves, and these in halves again. The
 * halves take the place of the whole in the queue or on disk, so single samples are tried first,
 * and a server that accepts nothing at all is known after a few of them: one or two dozen requests.
 * From then on a payload that is too large is dropped at once, until the server has accepted
 * something. (An exporter that is started again finds halves on disk in their order, after the
 * others.)
 *
 * The sender of the whole gets its answer when both halves are settled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp-rewrite.h"
#include "src/exporter/internal.h"
#include "util/clock.h"

static uint64_t share(uint64_t all, uint64_t part, uint64_t total)
{
	uint64_t product;

	if (total == 0 || __builtin_mul_overflow(all, part, &product))
		return all / 2;
	return product / total;
}

/* The body of x before compression: in place, or in *ret_owned. */
static int unpack(const struct destination *d, const struct entry *x, const uint8_t **ret,
		  size_t *ret_n, uint8_t **ret_owned)
{
	enum encoding encoding;
	int r;

	*ret = entry_body(d, x, ret_n, &encoding);
	if (encoding == ENCODING_IDENTITY)
		return 0;
	r = encoding_decode(encoding, *ret, *ret_n, PAYLOAD_MAX_BYTES, ret_owned, ret_n);
	*ret = *ret_owned;
	return r;
}

static int make_parts(const struct destination *d, const struct entry *x, uint64_t now,
		      const uint8_t *bytes, size_t n, struct payload *ret[2])
{
	struct otlp_half half[2] = {0};
	uint64_t first = 0;
	uint32_t n_halvings = x->file ? x->file->n_halvings : x->payload->n_halvings;
	int r = otlp_split(bytes, n, n_halvings, half);

	for (int i = 0; i < 2 && r == 0; i++) {
		struct payload *p;

		r = payload_pack(&ret[i], half[i].bytes.bytes, half[i].bytes.n, d->encoding);
		if (r < 0)
			break;
		p = ret[i];
		p->id = x->file ? x->file->id : x->payload->id;
		p->n_halvings = n_halvings + 1;
		p->time_unix_ns =
			x->payload ? x->payload->time_unix_ns
				   : clock_realtime_ns() - (now - (uint64_t)x->file->since_ns);
		if (i == 0)
			first = share(x->n_samples, half[0].n_samples,
				      half[0].n_samples + half[1].n_samples);
		p->n_samples = i == 0 ? first : x->n_samples - first;
	}
	wire_buffer_deinit(&half[0].bytes);
	wire_buffer_deinit(&half[1].bytes);
	return r;
}

int split_make(const struct destination *d, const struct entry *x, uint64_t now,
	       struct payload *ret[2])
{
	_cleanup_free_ uint8_t *owned = NULL;
	struct payload *parts[2] = {NULL, NULL};
	const uint8_t *bytes;
	size_t n;
	int r = unpack(d, x, &bytes, &n, &owned);

	if (r == 0)
		r = make_parts(d, x, now, bytes, n, parts);
	if (r < 0) {
		payload_free(parts[0]);
		payload_free(parts[1]);
		return r;
	}
	memcpy(ret, parts, sizeof(parts));
	return 0;
}
