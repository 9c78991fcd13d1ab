/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads in the queue and on disk are always protobuf, compressed as the destination wants it, so
 * a change of protocol or preset in the configuration does not affect them. JSON, which is four
 * times as long, is made for one attempt at a time, and compressed while it is written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/otlp-json.h"
#include "src/exporter/internal.h"
#include "util/cleanup.h"

struct json_text {
	struct encoder *encoder;
	size_t n;
};

static ssize_t put_text(void *cookie, const char *bytes, size_t n)
{
	struct json_text *t = cookie;

	t->n += n;
	return encoder_put(t->encoder, (const uint8_t *)bytes, n, false) < 0 ? 0 : (ssize_t)n;
}

/* *ret_n: of the text. */
static int put_json(struct encoder *e, const uint8_t *bytes, size_t n, size_t *ret_n)
{
	struct json_text t = {.encoder = e};
	FILE *f = fopencookie(&t, "w", (cookie_io_functions_t){.write = put_text});
	int r;

	if (!f)
		return -ENOMEM;
	r = otlp_json_write(f, bytes, n);
	if (fclose(f) != 0 && r == 0)
		r = -ENOMEM;
	*ret_n = t.n;
	return r < 0 ? r : encoder_put(e, NULL, 0, true);
}

static int make(struct destination *d, const uint8_t *raw, size_t n, struct body *ret)
{
	_cleanup_(wire_buffer_deinit) struct wire_buffer adapted = {0};
	_cleanup_(encoder_freep) struct encoder *e = NULL;
	int r = 0;

	if (d->dialect != OTLP_PLAIN) {
		r = otlp_adapt(raw, n, d->dialect, &adapted);
		raw = adapted.bytes;
		n = adapted.n;
	}
	if (r == 0)
		r = encoder_new(&e, d->encoding, d->json ? 0 : n);
	ret->n_raw = n;
	if (r == 0)
		r = d->json ? put_json(e, raw, n, &ret->n_raw) : encoder_put(e, raw, n, true);
	if (r < 0)
		return r;
	free(d->made);
	ret->bytes = d->made = encoder_take(e, &ret->n);
	ret->encoding = d->encoding;
	return 0;
}

int body_make(struct destination *d, const struct entry *x, struct body *ret)
{
	_cleanup_free_ uint8_t *owned = NULL;
	struct body b = {.bytes = NULL};
	const uint8_t *raw;
	size_t n;
	int r = 0;

	b.bytes = entry_body(d, x, &b.n, &b.encoding);
	b.n_raw = encoding_size(b.encoding, b.bytes, b.n);
	raw = b.bytes;
	n = b.n;
	/* Spooled under another configuration: every server takes gzip, and few take zstd. */
	if (d->json || d->dialect != OTLP_PLAIN ||
	    (b.encoding != d->encoding && b.encoding == ENCODING_ZSTD)) {
		if (b.encoding != ENCODING_IDENTITY) {
			r = encoding_decode(b.encoding, raw, n, PAYLOAD_MAX_BYTES, &owned, &n);
			raw = owned;
		}
		if (r == 0)
			r = make(d, raw, n, &b);
	}
	if (r == 0)
		*ret = b;
	return r;
}
