/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/debug-file.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "util/cursor.h"

#define MAX_CRC_BYTES (UINT64_C(1) << 30) /* a second of reading */
#define CRC_CHUNK     65536

/* Copies the file name at the start of a section to *ret, and returns a cursor after it, failed if
 * there is no such section. */
static struct cursor link_section(const struct elf_image *im, const char *section,
				  uint8_t bytes[DEBUG_LINK_MAX], struct debug_link *ret)
{
	const struct elf_section *s = elf_image_find(im, section);
	struct cursor c = {.failed = true};
	const char *name;

	*ret = (struct debug_link){0};
	if (!s || s->type == SHT_NOBITS || s->flags & SHF_COMPRESSED || s->size > DEBUG_LINK_MAX ||
	    elf_image_read(im, s->offset, bytes, s->size) < 0)
		return c;
	c = cursor_make(bytes, s->size);
	name = cursor_string(&c);
	if (name)
		(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return c;
}

void debug_link_read(struct debug_link *ret, const struct elf_image *im)
{
	uint8_t bytes[DEBUG_LINK_MAX];
	struct cursor c = link_section(im, ".gnu_debuglink", bytes, ret);

	(void)cursor_take(&c, -(size_t)(c.cur - c.start) & 3);
	ret->crc = cursor_u32(&c);
	if (!cursor_ok(&c))
		ret->name[0] = '\0';
	ret->n_build_id = elf_image_build_id(im, ret->build_id);
}

void debug_link_read_alt(struct debug_link *ret, const struct elf_image *im)
{
	uint8_t bytes[DEBUG_LINK_MAX];
	struct cursor c = link_section(im, ".gnu_debugaltlink", bytes, ret);

	if (cursor_left(&c) <= sizeof(ret->build_id)) {
		ret->n_build_id = cursor_left(&c);
		cursor_read(&c, ret->build_id, ret->n_build_id);
	}
}

static bool crc_matches(const struct elf_image *im, uint32_t crc)
{
	_cleanup_free_ uint8_t *chunk = malloc(CRC_CHUNK);
	uLong sum = crc32(0, NULL, 0);

	if (!chunk || im->n_bytes > MAX_CRC_BYTES)
		return false;
	for (uint64_t at = 0; at < im->n_bytes; at += CRC_CHUNK) {
		uint64_t left = im->n_bytes - at;
		size_t n = left < CRC_CHUNK ? (size_t)left : CRC_CHUNK;

		if (elf_image_read(im, at, chunk, n) < 0)
			return false;
		sum = crc32(sum, chunk, (uInt)n);
	}
	return sum == crc;
}

/* Is this the file that link means? im: NULL for a supplementary file. A build id proves it; the
 * checksum counts only if one side has no build id. */
static bool file_belongs(const struct debug_link *link, const struct elf_image *im,
			 const struct elf_image *file)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t n = elf_image_build_id(file, id);

	if (im && (file->machine != im->machine || file->is64 != im->is64))
		return false;
	if (!im || (n && link->n_build_id))
		return n == link->n_build_id && memcmp(id, link->build_id, n) == 0;
	return *link->name && crc_matches(file, link->crc);
}

static int link_open(const struct debug_link *link, const struct elf_image *im,
		     symbol_open_debug_fn open_debug, void *ctx, struct elf_image *ret)
{
	_cleanup_close_ int fd = -EBADF;

	fd = open_debug(ctx, link->n_build_id ? link->build_id : NULL, link->n_build_id,
			*link->name ? link->name : NULL, link->crc);
	if (fd < 0 || elf_image_open_fd(ret, fd) < 0)
		return 1;
	if (!file_belongs(link, im, ret)) {
		elf_image_close(ret);
		return -ENOEXEC;
	}
	(void)TAKE_FD(fd);
	return 0;
}

int debug_file_open(const struct debug_link *link, const struct elf_image *im,
		    symbol_open_debug_fn open_debug, void *ctx, struct elf_image *ret)
{
	if (!*link->name && !link->n_build_id)
		return 1;
	return link_open(link, im, open_debug, ctx, ret);
}

int debug_file_open_alt(const struct debug_link *link, symbol_open_debug_fn open_debug, void *ctx,
			struct elf_image *ret)
{
	return link->n_build_id ? link_open(link, NULL, open_debug, ctx, ret) : 1;
}
