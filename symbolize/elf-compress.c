/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed bytes of ELF files: sections in the form of the gABI (SHF_COMPRESSED, zlib or zstd)
 * and in the older GNU form (.zdebug_*: "ZLIB", the size in big endian, zlib), and streams of xz
 * (.gnu_debugdata). The size in a header is checked before memory is allocated for it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <elf.h>
#include <endian.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_LZMA
#include <lzma.h>
#endif
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include "symbolize/elf-image.h"
#include "util/cursor.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define XZ_FIRST_BYTES (UINT64_C(256) << 10)
#define XZ_MAX_MEMORY  (UINT64_C(128) << 20) /* xz -9 needs 65 MiB */

/*
 * How many bytes one byte can inflate to. A header with a larger size is forged, to make us
 * allocate.
 */
static uint64_t max_gain(uint32_t type)
{
	switch (type) {
	case ELFCOMPRESS_ZLIB:
		return 1032;
#ifdef HAVE_ZSTD
	case ELFCOMPRESS_ZSTD:
		return 1 << 16; /* a block of 128 KiB that repeats a byte takes 4 */
#endif
	default:
		return 0;
	}
}

/* libdeflate takes less than half of zlib's time, which saves tens of milliseconds for the separate
 * debug file of a C library. */
static bool inflate_zlib(void *ret, size_t n, const void *data, size_t n_data)
{
#ifdef HAVE_LIBDEFLATE
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result r = LIBDEFLATE_BAD_DATA;

	if (d)
		r = libdeflate_zlib_decompress(d, data, n_data, ret, n, NULL);
	libdeflate_free_decompressor(d);
	return r == LIBDEFLATE_SUCCESS;
#else
	uLongf n_done = n;

	return uncompress(ret, &n_done, data, n_data) == Z_OK && n_done == n;
#endif
}

/* Decompresses to exactly n bytes, or returns false. */
static bool decompress(uint32_t type, void *ret, size_t n, const void *data, size_t n_data)
{
#ifdef HAVE_ZSTD
	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(ret, n, data, n_data) == n;
#endif
	return inflate_zlib(ret, n, data, n_data);
}

static uint32_t read_header(struct cursor *c, bool is64, uint64_t *ret_n)
{
	uint32_t type = cursor_u32(c), gnu;

	memcpy(&gnu, "ZLIB", sizeof(gnu));
	if (type == gnu) {
		*ret_n = be64toh(cursor_u64(c));
		return ELFCOMPRESS_ZLIB;
	}
	if (is64)
		(void)cursor_u32(c); /* ch_reserved */
	*ret_n = is64 ? cursor_u64(c) : cursor_u32(c);
	(void)(is64 ? cursor_u64(c) : cursor_u32(c)); /* ch_addralign */
	return type;
}

int elf_bytes_inflate(struct elf_bytes *b, bool is64, uint64_t max_bytes)
{
	struct cursor c = cursor_make(b->data, b->n);
	struct elf_bytes out = {0};
	uint64_t n;
	uint32_t type = read_header(&c, is64, &n);

	if (!cursor_ok(&c) || n == 0)
		return -ENOEXEC;
	if (max_gain(type) == 0)
		return -EOPNOTSUPP;
	if (n > max_bytes || n > SIZE_MAX / 2)
		return -EFBIG;
	if (n / max_gain(type) > cursor_left(&c))
		return -ENOEXEC;
	out.n = (size_t)n;
	out.heap = malloc(out.n);
	if (!out.heap)
		return -ENOMEM;
	if (!decompress(type, out.heap, out.n, c.cur, cursor_left(&c))) {
		free(out.heap);
		return -ENOEXEC;
	}
	out.data = out.heap;
	elf_bytes_release(b);
	*b = out;
	return 0;
}

#ifdef HAVE_LZMA
/* The size is known only at the end, so the buffer doubles, up to max_bytes. */
static int unxz(lzma_stream *s, struct elf_bytes *out, uint64_t max_bytes)
{
	size_t room = 0;
	lzma_ret r;

	do {
		if (s->avail_out == 0) {
			size_t more = room ? room : XZ_FIRST_BYTES;
			void *bigger;

			if (room >= max_bytes)
				return -EFBIG;
			if (more > max_bytes - room)
				more = (size_t)(max_bytes - room);
			bigger = realloc(out->heap, room + more);
			if (!bigger)
				return -ENOMEM;
			out->heap = bigger;
			s->next_out = (uint8_t *)out->heap + room;
			s->avail_out = more;
			room += more;
		}
		r = lzma_code(s, LZMA_FINISH);
	} while (r == LZMA_OK);
	out->n = room - s->avail_out;
	out->data = out->heap;
	return r == LZMA_STREAM_END	  ? 0
	       : r == LZMA_MEMLIMIT_ERROR ? -EFBIG
	       : r == LZMA_MEM_ERROR	  ? -ENOMEM
					  : -ENOEXEC;
}

int elf_bytes_unxz(struct elf_bytes *b, uint64_t max_bytes)
{
	lzma_stream s = LZMA_STREAM_INIT;
	struct elf_bytes out = {0};
	int r = lzma_stream_decoder(&s, XZ_MAX_MEMORY, 0) == LZMA_OK ? 0 : -ENOMEM;

	s.next_in = b->data;
	s.avail_in = b->n;
	if (r == 0)
		r = unxz(&s, &out, max_bytes);
	lzma_end(&s);
	if (r < 0) {
		free(out.heap);
		return r;
	}
	elf_bytes_release(b);
	*b = out;
	return 0;
}
#else
int elf_bytes_unxz(struct elf_bytes *b, uint64_t max_bytes)
{
	return -EOPNOTSUPP;
}
#endif
