/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding records: an .eh_frame and its header, for the functions that follow them in the file.
 *
 * V8 and CPython write what perf inject turns into a section: first the .eh_frame of the next
 * function, with addresses as if it followed that function's code at the next multiple of 8; then
 * the header. LLVM writes the header first, as the specification says, with the address of the
 * .eh_frame in the process; it is for all functions up to the next such record. The first word
 * tells the two apart: it is the length of the first entry, or the start of a header (1 and three
 * encodings), a number beyond any length. With a header alone, V8 says that the code has frame
 * pointers.
 *
 * The header's search table is not used: the ranges in the FDEs count (unwind/entry.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "symbolize/jitdump-internal.h"

/* DWARF's pointer encodings (LSB 10.5.1) that are a plain address. */
#define PE_ABSPTR 0x00
#define PE_UDATA8 0x04
#define PE_SDATA8 0x0c

/* Follows the "name" of a function in the table, with the .eh_frame after it. */
struct packed {
	uint64_t serial, address;
};

void jitdump_frames_forget(struct jitdump_frames *f)
{
	free(f->bytes);
	*f = (struct jitdump_frames){0};
}

/* The address of the .eh_frame, from the header; 0: nothing usable. */
static uint64_t header_address(const uint8_t *header, size_t n)
{
	struct cursor c = cursor_make(header, n);
	uint8_t version = cursor_u8(&c), encoding = cursor_u8(&c);
	uint64_t address;

	(void)cursor_take(&c, 2);
	address = cursor_u64(&c);
	if (!cursor_ok(&c) || version != 1 ||
	    (encoding != PE_ABSPTR && encoding != PE_UDATA8 && encoding != PE_SDATA8))
		return 0;
	return address;
}

int jitdump_read_frames(struct jitdump *j, struct cursor *c)
{
	uint64_t n = cursor_u64(c), n_header = cursor_u64(c), address = 0;
	const uint8_t *bytes;
	struct cursor first;

	(void)cursor_u64(c); /* bytes of it that the process has mapped */
	jitdump_frames_forget(&j->frames);
	if (!cursor_ok(c) || n > cursor_left(c) || n_header > n) {
		j->n_bad++;
		return 0;
	}
	bytes = cursor_take(c, (size_t)n);
	n -= n_header;
	if (n == 0)
		return 0;
	first = cursor_make(bytes, (size_t)(n + n_header));
	if (cursor_u32(&first) > n) {
		address = header_address(bytes, (size_t)n_header);
		bytes += n_header;
		if (address == 0)
			bytes = NULL;
	}
	if (!bytes || n > JITDUMP_MAX_FRAMES_BYTES) {
		j->n_bad++;
		return 0;
	}
	j->frames.bytes = malloc((size_t)n);
	if (!j->frames.bytes)
		return -ENOMEM;
	memcpy(j->frames.bytes, bytes, (size_t)n);
	j->frames.n = (size_t)n;
	j->frames.address = address;
	j->frames.serial = ++j->n_frames;
	return 0;
}

int jitdump_add_frames(struct jitdump *j, uint64_t start, uint64_t size)
{
	const struct jitdump_frames *f = &j->frames;
	const struct packed p = {f->serial, f->address};
	size_t n = f->n ? sizeof(p) + f->n : 0;
	_cleanup_free_ uint8_t *more = NULL;
	int r;

	if (n > 0) {
		more = malloc(n);
		if (!more)
			return -ENOMEM;
		memcpy(more, &p, sizeof(p));
		memcpy(more + sizeof(p), f->bytes, f->n);
	}
	/* Unwinding needs no names. */
	r = code_table_add(&j->table, start, size, "-", 1, more, n);
	if (f->address == 0)
		jitdump_frames_forget(&j->frames);
	return r;
}

int jitdump_lookup_unwinding(struct jitdump *j, uint64_t address, struct jitdump_unwinding *ret)
{
	const struct code_entry *e = code_table_lookup(&j->table, address);
	const uint8_t *more;
	struct packed p;

	if (!e || e->n_more < sizeof(p))
		return 1;
	more = (const uint8_t *)code_table_name(&j->table, e) + 2;
	memcpy(&p, more, sizeof(p));
	code_table_piece(&j->table, e, address, &ret->start, &ret->end);
	ret->serial = p.serial;
	ret->eh_frame = more + sizeof(p);
	ret->n_eh_frame = e->n_more - sizeof(p);
	ret->address = p.address ? p.address
				 : e->start - e->skip + ((e->whole + UINT64_C(7)) & ~UINT64_C(7));
	return 0;
}

bool jitdump_has_unwinding(const struct jitdump *j)
{
	return j->n_frames > 0;
}
