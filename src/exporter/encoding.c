/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input is encoded in the pieces in which it comes, so that no body is held in both forms; all
 * three encodings write into one growing buffer. The exception is a body of a known, usual size for
 * gzip: libdeflate needs the whole body, and takes half of zlib's time.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "src/exporter/encoding.h"

/* On a busy host's window of 330 KB: zlib 9% larger than with level 6 (the default), in two fifths
 * of its time; libdeflate 6% larger, in a sixth. */
#define GZIP_LEVEL  1
#define GZIP_WINDOW (15 + 16) /* 16: with gzip header and trailer */
/* The library's default: smaller than gzip's best, faster than its fastest. */
#define ZSTD_LEVEL  3
#define LEAST_BYTES 1024u
#define WHOLE_BYTES (8u << 20) /* at most, held in both forms; a payload has 4 MiB */

struct buffer {
	uint8_t *bytes;
	size_t n, size, max;
};

struct encoder {
	enum encoding encoding;
	struct buffer out;
	z_stream z;
	bool z_open;
	bool whole; /* all input is collected first, in: */
	struct buffer in;
#ifdef HAVE_ZSTD
	ZSTD_CCtx *zstd;
#endif
};

const char *encoding_name(enum encoding encoding)
{
	static const char *const names[N_ENCODINGS] = {"identity", "gzip", "zstd"};

	return names[encoding];
}

bool encoding_supported(enum encoding encoding)
{
#ifndef HAVE_ZSTD
	if (encoding == ENCODING_ZSTD)
		return false;
#endif
	return encoding < N_ENCODINGS;
}

/* At least one more byte of room. */
static int grow(struct buffer *b, size_t want)
{
	size_t size = b->size * 2 > want ? b->size * 2 : want;
	uint8_t *grown;

	if (b->size >= b->max)
		return -EFBIG;
	if (size > b->max)
		size = b->max;
	grown = realloc(b->bytes, size);
	if (!grown)
		return -ENOMEM;
	b->bytes = grown;
	b->size = size;
	return 0;
}

/* --- in ------------------------------------------------------------------------------------ */

static int append(struct buffer *b, const uint8_t *bytes, size_t n)
{
	int r = n > b->size - b->n ? grow(b, b->n + n) : 0;

	if (r < 0)
		return r;
	if (n > 0)
		memcpy(b->bytes + b->n, bytes, n);
	b->n += n;
	return 0;
}

#ifdef HAVE_LIBDEFLATE
static int pack_whole(struct encoder *e)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(GZIP_LEVEL);
	int r = c ? grow(&e->out, libdeflate_gzip_compress_bound(c, e->in.n)) : -ENOMEM;

	if (r == 0)
		e->out.n = libdeflate_gzip_compress(c, e->in.bytes, e->in.n, e->out.bytes,
						    e->out.size);
	libdeflate_free_compressor(c);
	return r < 0 ? r : e->out.n > 0 ? 0 : -EIO;
}

static int put_whole(struct encoder *e, const uint8_t *bytes, size_t n, bool last)
{
	int r = append(&e->in, bytes, n);

	return r == 0 && last ? pack_whole(e) : r;
}
#endif

static int put_gzip(struct encoder *e, const uint8_t *bytes, size_t n, bool last)
{
	int r;

	e->z.next_in = (uint8_t *)(uintptr_t)bytes; /* which zlib does not write to */
	e->z.avail_in = (uInt)n;
	do {
		if (e->out.n == e->out.size && grow(&e->out, 0) < 0)
			return -ENOMEM;
		e->z.next_out = e->out.bytes + e->out.n;
		e->z.avail_out = (uInt)(e->out.size - e->out.n);
		r = deflate(&e->z, last ? Z_FINISH : Z_NO_FLUSH);
		if (r == Z_STREAM_ERROR)
			return -EIO;
		e->out.n = e->out.size - e->z.avail_out;
	} while (last ? r != Z_STREAM_END : e->z.avail_in > 0);
	return 0;
}

#ifdef HAVE_ZSTD
static int put_zstd(struct encoder *e, const uint8_t *bytes, size_t n, bool last)
{
	ZSTD_inBuffer in = {bytes, n, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {NULL, 0, 0};

		if (e->out.n == e->out.size && grow(&e->out, 0) < 0)
			return -ENOMEM;
		out = (ZSTD_outBuffer){e->out.bytes, e->out.size, e->out.n};
		left = ZSTD_compressStream2(e->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		e->out.n = out.pos;
	} while (last ? left > 0 : in.pos < in.size);
	return 0;
}

static int open_zstd(struct encoder *e, size_t n_input)
{
	e->zstd = ZSTD_createCCtx();
	if (!e->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	    (n_input && ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(e->zstd, n_input))))
		return -ENOMEM;
	return 0;
}
#endif

int encoder_put(struct encoder *e, const uint8_t *bytes, size_t n, bool last)
{
	switch (e->encoding) {
	case ENCODING_GZIP:
#ifdef HAVE_LIBDEFLATE
		if (e->whole)
			return put_whole(e, bytes, n, last);
#endif
		return put_gzip(e, bytes, n, last);
#ifdef HAVE_ZSTD
	case ENCODING_ZSTD:
		return put_zstd(e, bytes, n, last);
#endif
	default:
		return append(&e->out, bytes, n);
	}
}

uint8_t *encoder_take(struct encoder *e, size_t *ret_n)
{
	uint8_t *fitted = e->out.n ? realloc(e->out.bytes, e->out.n) : NULL;
	uint8_t *bytes = fitted ? fitted : e->out.bytes;

	*ret_n = e->out.n;
	e->out = (struct buffer){.bytes = NULL};
	return bytes;
}

/* Of some bytes it makes a copy and their CRC-32. The CRC-32 of both depends on their number only,
 * and the spool tells bodies apart by it. */
static bool takes_whole(enum encoding encoding, size_t n_input)
{
#ifdef HAVE_LIBDEFLATE
	return encoding == ENCODING_GZIP && n_input >= LEAST_BYTES && n_input <= WHOLE_BYTES;
#else
	return false;
#endif
}

static int open_gzip(struct encoder *e)
{
	e->z_open = deflateInit2(&e->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
				 Z_DEFAULT_STRATEGY) == Z_OK;
	return e->z_open ? 0 : -ENOMEM;
}

int encoder_new(struct encoder **ret, enum encoding encoding, size_t n_input)
{
	_cleanup_(encoder_freep) struct encoder *e = calloc(1, sizeof(*e));
	/* Profiles shrink to a third or less. */
	size_t size = encoding == ENCODING_IDENTITY ? n_input : n_input / 3;
	int r;

	if (!encoding_supported(encoding))
		return -EOPNOTSUPP;
	if (!e)
		return -ENOMEM;
	e->encoding = encoding;
	e->out.max = e->in.max = SIZE_MAX;
	e->whole = takes_whole(encoding, n_input);
	r = e->whole ? grow(&e->in, n_input) : grow(&e->out, size + LEAST_BYTES);
	if (r == 0 && encoding == ENCODING_GZIP && !e->whole)
		r = open_gzip(e);
#ifdef HAVE_ZSTD
	if (r == 0 && encoding == ENCODING_ZSTD)
		r = open_zstd(e, n_input);
#endif
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

struct encoder *encoder_free(struct encoder *e)
{
	if (!e)
		return NULL;
	if (e->z_open)
		(void)deflateEnd(&e->z);
#ifdef HAVE_ZSTD
	(void)ZSTD_freeCCtx(e->zstd);
#endif
	free(e->in.bytes);
	free(e->out.bytes);
	free(e);
	return NULL;
}

/* --- out ----------------------------------------------------------------------------------- */

static int decode_gzip(struct buffer *out, const uint8_t *bytes, size_t n)
{
	z_stream z = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (uInt)n};
	int code = inflateInit2(&z, GZIP_WINDOW) == Z_OK ? Z_OK : Z_MEM_ERROR, r = 0;

	if (code != Z_OK)
		return -ENOMEM;
	while (r == 0 && code == Z_OK) {
		if (out->n == out->size)
			r = grow(out, 0);
		if (r < 0)
			break;
		z.next_out = out->bytes + out->n;
		z.avail_out = (uInt)(out->size - out->n);
		code = inflate(&z, Z_NO_FLUSH);
		out->n = out->size - z.avail_out;
		/* All of the input is there: when it is used up, more room brings nothing. */
		if (code == Z_OK && z.avail_out > 0)
			r = -EBADMSG;
	}
	(void)inflateEnd(&z);
	if (r == 0 && code != Z_STREAM_END)
		r = code == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	return r;
}

#ifdef HAVE_ZSTD
static int decode_zstd(struct buffer *out, const uint8_t *bytes, size_t n)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();
	ZSTD_inBuffer in = {bytes, n, 0};
	size_t left = 1;
	int r = d ? 0 : -ENOMEM;

	while (r == 0 && left > 0) {
		ZSTD_outBuffer o;

		if (out->n == out->size)
			r = grow(out, 0);
		if (r < 0)
			break;
		o = (ZSTD_outBuffer){out->bytes, out->size, out->n};
		left = ZSTD_decompressStream(d, &o, &in);
		out->n = o.pos;
		if (ZSTD_isError(left) || (left > 0 && o.pos < o.size))
			r = -EBADMSG;
	}
	(void)ZSTD_freeDCtx(d);
	return r;
}
#endif

size_t encoding_size(enum encoding encoding, const uint8_t *bytes, size_t n)
{
	if (encoding == ENCODING_IDENTITY)
		return n;
	/* Its last field, the size modulo 4 GiB. */
	if (encoding == ENCODING_GZIP && n >= 18)
		return (size_t)bytes[n - 4] | (size_t)bytes[n - 3] << 8 |
		       (size_t)bytes[n - 2] << 16 | (size_t)bytes[n - 1] << 24;
#ifdef HAVE_ZSTD
	if (encoding == ENCODING_ZSTD) {
		unsigned long long size = ZSTD_getFrameContentSize(bytes, n);

		if (size != ZSTD_CONTENTSIZE_UNKNOWN && size != ZSTD_CONTENTSIZE_ERROR)
			return size > SIZE_MAX ? SIZE_MAX : (size_t)size;
	}
#endif
	return 0;
}

static int decode(enum encoding encoding, struct buffer *out, const uint8_t *bytes, size_t n)
{
	switch (encoding) {
	case ENCODING_GZIP:
		return decode_gzip(out, bytes, n);
#ifdef HAVE_ZSTD
	case ENCODING_ZSTD:
		return decode_zstd(out, bytes, n);
#endif
	default:
		return -EOPNOTSUPP;
	}
}

int encoding_decode(enum encoding encoding, const uint8_t *bytes, size_t n, size_t max_bytes,
		    uint8_t **ret, size_t *ret_n)
{
	struct buffer out = {.max = max_bytes};
	int r;

	if (n > UINT32_MAX)
		return -EFBIG;
	r = grow(&out, 4 * n + LEAST_BYTES);
	if (r == 0)
		r = decode(encoding, &out, bytes, n);
	if (r < 0) {
		free(out.bytes);
		return r;
	}
	*ret = out.bytes;
	*ret_n = out.n;
	return 0;
}
