/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .debug_frame: the only CFI of Go programs, which compress it.
 *
 * Only this one section is inflated, at most max_inflate_bytes of it and never more than its header
 * promises, and only when .eh_frame has no FDE for a pc. zlib reads private copies of a few KiB,
 * made under the guard. The result counts against the byte budget of the rows and is evicted with
 * them.
 */
#include <elf.h>
#include <zlib.h>

#include "unwind/internal.h"

enum { CHUNK = 16 * 1024 };

struct chunk {
	const uint8_t *from;
	size_t n;
	uint8_t bytes[CHUNK];
};

static int copy_chunk(void *arg)
{
	struct chunk *c = arg;

	memcpy(c->bytes, c->from, c->n);
	return 0;
}

/* Copies the next bytes of the section; 0, or -EIO. */
static int next_chunk(struct chunk *c, const struct window *raw, size_t *at)
{
	c->from = raw->data + *at;
	c->n = raw->n - *at < CHUNK ? raw->n - *at : CHUNK;
	*at += c->n;
	return guard_run(copy_chunk, c);
}

/* Size and kind of the compressed data; *at: where the data begins, after the header. */
static int read_header(const struct unwind_module *m, struct chunk *c, size_t *at, uint64_t *ret_n)
{
	const struct window *raw = &m->debug_raw;
	Elf64_Chdr ch;
	int r = next_chunk(c, raw, at);

	if (r < 0)
		return r;
	if (m->debug_compression == DEBUG_ZLIB_CHDR) {
		if (c->n < sizeof(ch))
			return -EBADMSG;
		memcpy(&ch, c->bytes, sizeof(ch));
		*at = sizeof(ch);
		*ret_n = ch.ch_size;
		return ch.ch_type == ELFCOMPRESS_ZLIB ? 0 : -EOPNOTSUPP;
	}
	/* From before SHF_COMPRESSED: "ZLIB" and the size, big endian. */
	if (c->n < 12 || memcmp(c->bytes, "ZLIB", 4) != 0)
		return -EBADMSG;
	*at = 12;
	*ret_n = 0;
	for (unsigned int i = 4; i < 12; i++)
		*ret_n = *ret_n << 8 | c->bytes[i];
	return 0;
}

static int run_inflate(z_stream *z, struct chunk *c, const struct window *raw, size_t at)
{
	int r = Z_OK;

	while (z->avail_out > 0 && r == Z_OK) {
		if (z->avail_in == 0) {
			if (at >= raw->n)
				return -EBADMSG;
			r = next_chunk(c, raw, &at);
			if (r < 0)
				return r;
			z->next_in = c->bytes;
			z->avail_in = (uInt)c->n;
		}
		r = inflate(z, Z_NO_FLUSH);
	}
	return z->avail_out == 0 && (r == Z_OK || r == Z_STREAM_END) ? 0 : -EBADMSG;
}

static int inflate_section(struct unwind_module *m, struct chunk *c)
{
	_cleanup_free_ uint8_t *out = NULL;
	z_stream z = {.next_in = NULL};
	uint64_t n = 0;
	size_t at = 0;
	int r;

	r = read_header(m, c, &at, &n);
	if (r < 0)
		return r;
	if (n == 0 || n > m->u->limits.max_inflate_bytes || n > UINT32_MAX)
		return -EFBIG;
	if (!rows_reserve(m, n))
		return -ENOMEM;
	out = malloc((size_t)n);
	r = out && inflateInit(&z) == Z_OK ? 0 : -ENOMEM;
	if (r == 0) {
		z.next_out = out;
		z.avail_out = (uInt)n;
		r = run_inflate(&z, c, &m->debug_raw, at);
		(void)inflateEnd(&z);
	}
	if (r < 0) {
		rows_release(m, n);
		return r;
	}
	m->debug_frame.data = (struct window){TAKE_PTR(out), (size_t)n, 0, NULL, 0};
	return 0;
}

int debug_frame_load(struct unwind_module *m)
{
	_cleanup_free_ struct chunk *c = NULL;
	int r;

	if (m->debug_frame.data.data)
		return 0;
	if (!m->debug_raw.data || m->debug_frame.broken)
		return -ENOENT;
	if (m->debug_compression == DEBUG_PLAIN) {
		m->debug_frame.data = m->debug_raw;
		return 0;
	}
	if (!may_make(m->u, &m->debug_frame))
		return -EBADMSG;
	c = malloc(sizeof(*c));
	r = c ? inflate_section(m, c) : -ENOMEM;
	if (r == 0)
		return 0;
	/* As if there were none: the walk tries the frame pointer, and the outcome says so. */
	m->debug_frame.broken = true;
	m->broken |= r == -EIO;
	return -ENOENT;
}
