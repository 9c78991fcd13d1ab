/* SPDX-License-Identifier: Apache-2.0 */
/* A payload that waits for a destination, in memory or on disk: its bytes, and its end. */
#include <stdlib.h>

#include "src/exporter/internal.h"

const uint8_t *entry_body(const struct destination *d, const struct entry *x, size_t *ret_n,
			  enum encoding *ret_encoding)
{
	*ret_encoding = x->file ? x->file->encoding : d->encoding;
	*ret_n = x->file ? x->file->n_body : 0;
	return x->payload ? payload_body(x->payload, *ret_encoding, ret_n) : x->body;
}

static void unload(struct destination *d, struct entry *x)
{
	free(x->body);
	x->body = NULL;
	if (x->payload)
		payload_release(x->payload);
	x->payload = NULL;
	d->stats.queue_bytes -= x->bytes;
	x->bytes = 0;
}

void entry_land(struct destination *d, struct entry *x)
{
	x->file->busy = false;
	unload(d, x);
}

void entry_remove(struct destination *d, struct entry *x)
{
	if (x->file) {
		TAILQ_REMOVE(&d->backlog, x, link);
		d->stats.spool_payloads--;
		d->stats.spool_bytes -= x->file->bytes;
		x->file->owner = NULL;
	} else {
		TAILQ_REMOVE(&d->queue, x, link);
		payload_settle(x->payload, &d->exporter->settled);
	}
	if (d->flying == x)
		d->flying = NULL;
	d->stats.queue_payloads--;
	unload(d, x);
	free(x);
}
