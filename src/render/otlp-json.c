/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP in JSON: makes the binary payload first, then converts it to text, so that one place decides
 * what a payload says.
 */
#include <errno.h>

#include "proto/otlp-json.h"
#include "src/render/render.h"

/* A file is one message of any size, like the binary one (render_otlp_file()). */
#define FILE_MAX_BYTES ((size_t)1 << 30)

struct json_sink {
	FILE *out;
	bool written;
};

static int write_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct json_sink *s = ctx;

	(void)n_samples;
	if (s->written)
		return -EFBIG;
	s->written = true;
	return otlp_json_write(s->out, bytes, n);
}

int render_otlp_json_file(const struct profile *p, const struct render_info *info, FILE *out)
{
	const struct render_otlp_options options = {FILE_MAX_BYTES, UINT32_MAX, .facts = true};
	struct json_sink s = {.out = out};
	int r = render_otlp(p, info, &options, write_payload, &s);

	/* Without samples there is no payload: write the empty message. */
	(void)fputs(s.written ? "\n" : "{}\n", out);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
