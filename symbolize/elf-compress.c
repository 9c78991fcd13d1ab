/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed sections (ELF gABI, SHF_COMPRESSED): what they promise is checked before it is paid
 * for. */
#include <elf.h>
#include <stdlib.h>
#include <zlib.h>

#include "symbolize/elf-image.h"
#include "util/cursor.h"

int elf_bytes_inflate(struct elf_bytes *b, bool is64, uint64_t max_bytes)
{
	struct elf_bytes out = {0};
	struct cursor c = cursor_make(b->data, b->n);
	uint32_t type = cursor_u32(&c);
	uLongf n;

	if (is64)
		(void)cursor_u32(&c); /* ch_reserved */
	out.n = is64 ? cursor_u64(&c) : cursor_u32(&c);
	(void)(is64 ? cursor_u64(&c) : cursor_u32(&c)); /* ch_addralign */
	if (!cursor_ok(&c) || out.n == 0)
		return -ENOEXEC;
	if (type != ELFCOMPRESS_ZLIB)
		return -EOPNOTSUPP;
	if (out.n > max_bytes)
		return -EFBIG;
	/* deflate gains at most a factor of 1032: a bigger promise is a lie told to make us
	 * allocate */
	if (out.n / 1032 > cursor_left(&c))
		return -ENOEXEC;
	out.heap = malloc(out.n);
	if (!out.heap)
		return -ENOMEM;
	n = out.n;
	if (uncompress(out.heap, &n, c.cur, cursor_left(&c)) != Z_OK || n != out.n) {
		free(out.heap);
		return -ENOEXEC;
	}
	out.data = out.heap;
	elf_bytes_release(b);
	*b = out;
	return 0;
}
