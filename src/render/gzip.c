/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "src/render/gzip.h"

struct gzip {
	FILE *out;
	z_stream z;
};

/* 0, or -1: out failed. */
static int compress_some(struct gzip *g, const char *bytes, size_t n, int flush)
{
	uint8_t buf[16384];

	g->z.next_in = (Bytef *)bytes;
	g->z.avail_in = (uInt)n;
	do {
		size_t m;

		g->z.next_out = buf;
		g->z.avail_out = sizeof(buf);
		(void)deflate(&g->z, flush);
		m = sizeof(buf) - g->z.avail_out;
		if (fwrite(buf, 1, m, g->out) != m)
			return -1;
	} while (g->z.avail_out == 0);
	return 0;
}

static ssize_t on_write(void *cookie, const char *bytes, size_t n)
{
	/* stdio writes a buffer at a time, but a caller may hand over anything. */
	size_t some = n < (1u << 20) ? n : 1u << 20;

	return compress_some(cookie, bytes, some, Z_NO_FLUSH) < 0 ? 0 : (ssize_t)some;
}

static int on_close(void *cookie)
{
	struct gzip *g = cookie;
	int r = compress_some(g, NULL, 0, Z_FINISH);

	(void)deflateEnd(&g->z);
	free(g);
	return r;
}

FILE *gzip_open(FILE *out)
{
	static const cookie_io_functions_t functions = {.write = on_write, .close = on_close};
	struct gzip *g = calloc(1, sizeof(*g));
	FILE *f;

	if (!g)
		return NULL;
	g->out = out;
	/* 16 + window bits: a gzip header, not zlib's. Level 6 is gzip's default. */
	if (deflateInit2(&g->z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return NULL;
	}
	f = fopencookie(g, "w", functions);
	if (!f) {
		(void)deflateEnd(&g->z);
		free(g);
	}
	return f;
}
