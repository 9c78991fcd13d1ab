/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body is read and not mapped: whoever encodes it also parses what strangers wrote, and a
 * descriptor that shrinks under a mapping would kill its reader. Compressed while it is read, it is
 * never held in both forms unless destinations differ, and what waits in a queue is small.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "src/export/payload.h"
#include "util/cleanup.h"

#define CHUNK_BYTES (64u << 10)
/* On a busy host's window of 160 KB: 8% larger than level 6 (the default), in two fifths of its
 * time. */
#define GZIP_LEVEL  1
#define GZIP_WINDOW (15 + 16) /* 16: with gzip header and trailer */

DEFINE_CLEANUP(struct payload *, payload_free)

struct deflater {
	z_stream z;
	bool open;
	uint8_t *out;
	size_t size;
};

static void deflater_deinit(struct deflater *d)
{
	if (d->open)
		(void)deflateEnd(&d->z);
	free(d->out);
}

static int deflater_init(struct deflater *d, size_t n_input)
{
	if (deflateInit2(&d->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	d->open = true;
	/* Profiles shrink to a third or less; where not, the buffer grows. */
	d->size = n_input / 3 + 1024;
	d->out = malloc(d->size);
	return d->out ? 0 : -ENOMEM;
}

static int deflater_put(struct deflater *d, const uint8_t *in, size_t n, bool last)
{
	int r;

	d->z.next_in = (uint8_t *)(uintptr_t)in; /* which zlib does not write to */
	d->z.avail_in = (uInt)n;
	do {
		if (d->z.total_out == d->size) {
			uint8_t *grown = realloc(d->out, d->size * 2);

			if (!grown)
				return -ENOMEM;
			d->out = grown;
			d->size *= 2;
		}
		d->z.next_out = d->out + d->z.total_out;
		d->z.avail_out = (uInt)(d->size - d->z.total_out);
		r = deflate(&d->z, last ? Z_FINISH : Z_NO_FLUSH);
		if (r == Z_STREAM_ERROR)
			return -EIO;
	} while (last ? r != Z_STREAM_END : d->z.avail_in > 0);
	return 0;
}

static int read_fully(int fd, uint8_t *to, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t got = pread(fd, to, n, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EIO;
		to += got;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static void take_gz(struct payload *p, struct deflater *d)
{
	uint8_t *fitted = realloc(d->out, d->z.total_out);

	p->n_gz = d->z.total_out;
	p->gz = fitted ? fitted : d->out;
	d->out = NULL;
}

static int read_gz(struct payload *p, int fd, size_t n)
{
	_cleanup_(deflater_deinit) struct deflater d = {.open = false};
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);
	int r = chunk ? deflater_init(&d, n) : -ENOMEM;

	for (size_t at = 0; r == 0 && at < n; at += CHUNK_BYTES) {
		size_t n_chunk = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;

		r = read_fully(fd, chunk, n_chunk, (off_t)at);
		if (r == 0)
			r = deflater_put(&d, chunk, n_chunk, at + n_chunk == n);
	}
	if (r == 0)
		take_gz(p, &d);
	return r;
}

static int read_raw(struct payload *p, int fd, size_t n)
{
	p->raw = malloc(n);
	p->n_raw = n;
	return p->raw ? read_fully(fd, p->raw, n, 0) : -ENOMEM;
}

int payload_new(struct payload **ret, int fd, bool want_raw, bool want_gz)
{
	_cleanup_(payload_freep) struct payload *p = NULL;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -ENODATA;
	if (st.st_size > (off_t)PAYLOAD_MAX_BYTES)
		return -EFBIG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->refs = 1;
	if (want_raw)
		r = read_raw(p, fd, (size_t)st.st_size);
	if (r == 0 && want_gz)
		r = read_gz(p, fd, (size_t)st.st_size);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int payload_pack(struct payload **ret, const uint8_t *bytes, size_t n, bool gz)
{
	_cleanup_(payload_freep) struct payload *p = calloc(1, sizeof(*p));
	_cleanup_(deflater_deinit) struct deflater d = {.open = false};
	int r;

	if (n == 0)
		return -ENODATA;
	if (n > PAYLOAD_MAX_BYTES)
		return -EFBIG;
	if (!p)
		return -ENOMEM;
	p->refs = 1;
	if (!gz) {
		p->raw = malloc(n);
		if (!p->raw)
			return -ENOMEM;
		memcpy(p->raw, bytes, n);
		p->n_raw = n;
	} else {
		r = deflater_init(&d, n);
		if (r == 0)
			r = deflater_put(&d, bytes, n, true);
		if (r < 0)
			return r;
		take_gz(p, &d);
	}
	*ret = TAKE_PTR(p);
	return 0;
}

struct inflater {
	z_stream z;
	bool open;
	uint8_t *out;
};

static void inflater_deinit(struct inflater *i)
{
	if (i->open)
		(void)inflateEnd(&i->z);
	free(i->out);
}

int payload_unpack(const uint8_t *gz, size_t n_gz, uint8_t **ret, size_t *ret_n)
{
	_cleanup_(inflater_deinit) struct inflater i = {.open = false};
	size_t size = 0;
	int r = Z_OK;

	if (n_gz > PAYLOAD_MAX_BYTES)
		return -EFBIG;
	if (inflateInit2(&i.z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	i.open = true;
	i.z.next_in = (uint8_t *)(uintptr_t)gz;
	i.z.avail_in = (uInt)n_gz;
	while (r == Z_OK) {
		size_t more = size ? size : 4 * n_gz + 1024;
		uint8_t *grown;

		if (size >= PAYLOAD_MAX_BYTES)
			return -EFBIG;
		grown = realloc(i.out, size + more);
		if (!grown)
			return -ENOMEM;
		i.out = grown;
		size += more;
		i.z.next_out = i.out + i.z.total_out;
		i.z.avail_out = (uInt)(size - i.z.total_out);
		r = inflate(&i.z, Z_NO_FLUSH);
		/* All of the input is there: when it is used up, more room brings nothing. */
		if (r == Z_OK && i.z.avail_out > 0)
			return -EBADMSG;
	}
	if (r != Z_STREAM_END)
		return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	*ret = TAKE_PTR(i.out);
	*ret_n = i.z.total_out;
	return 0;
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	free(p->raw);
	free(p->gz);
	free(p);
}
