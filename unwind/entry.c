/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a pc to a private copy of the CIE and the FDE that describe it.
 *
 * The sorted table of .eh_frame_hdr is used in place. Without it (and for .debug_frame) one scan
 * makes an index of 8 bytes for each FDE, which counts against the byte budget of the rows. Both
 * are only hints: the range in the FDE decides whether it covers the pc.
 *
 * All bytes are read under the guard and copied before they are checked: a file may also change
 * between check and use.
 */
#include <dwarf.h>

#include "unwind/internal.h"
#include "util/bisect.h"

enum {
	MAX_SCAN_BYTES = 32 * 1024 * 1024,
	MAX_INDEX = 4 * 1024 * 1024, /* FDEs */
};

#define TABLE_PAIR 8

/* What a CIE says about its FDEs. */
struct cie {
	uint32_t offset; /* in the section; UINT32_MAX: none read yet */
	uint8_t fde_encoding;
	bool sized_augmentation, signal_frame;
	uint64_t code_align;
	int64_t data_align;
	const uint8_t *code;
	size_t n_code;
};

struct fde {
	struct cie *cie;
	uint64_t start, end;
	const uint8_t *code;
	size_t n_code;
};

/* The header of an entry: length and id, in the 32- or 64-bit form. */
struct head {
	struct cursor body; /* after the id */
	uint64_t id;
	uint64_t id_offset; /* of the id field in the section */
	uint64_t next;	    /* offset of the following entry */
	bool is_64;
};

bool leb_read_u(struct cursor *c, uint64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		byte = cursor_u8(c);
		if (!cursor_ok(c) || (shift == 63 && byte & 0x7e))
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

bool leb_read_s(struct cursor *c, int64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		byte = cursor_u8(c);
		if (!cursor_ok(c))
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if (byte & 0x40 && shift + 7 < 64)
				value |= ~UINT64_C(0) << (shift + 7);
			*ret = (int64_t)value;
			return true;
		}
	}
	return false;
}

static bool read_head(const struct cfi_section *s, uint64_t offset, struct head *ret)
{
	struct cursor c;
	uint64_t length;

	if (offset >= s->data.n)
		return false;
	c = cursor_make(s->data.data + offset, s->data.n - (size_t)offset);
	length = cursor_u32(&c);
	ret->is_64 = length == UINT32_MAX;
	if (ret->is_64)
		length = cursor_u64(&c);
	if (!cursor_ok(&c) || length > cursor_left(&c) || length < 4)
		return false;
	ret->body = cursor_make(c.cur, (size_t)length);
	ret->id_offset = (uint64_t)(c.cur - s->data.data);
	ret->next = ret->id_offset + length;
	/* .eh_frame's ids are 4 bytes in the long form too. */
	ret->id = ret->is_64 && !s->eh ? cursor_u64(&ret->body) : cursor_u32(&ret->body);
	return cursor_ok(&ret->body);
}

static bool head_is_cie(const struct cfi_section *s, const struct head *h)
{
	if (s->eh)
		return h->id == 0;
	return h->id == (h->is_64 ? UINT64_MAX : UINT32_MAX);
}

/* An encoded pointer (LSB 10.5.1), in the encodings that linkers use on this architecture. */
static bool read_encoded(const struct cfi_section *s, struct cursor *c, uint8_t encoding,
			 uint64_t *ret)
{
	uint64_t value = 0;

	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value = s->data.addr + (uint64_t)(c->cur - s->data.data);
	else if ((encoding & 0x70) != 0)
		return false;
	switch (encoding & 0x8f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value += cursor_u64(c);
		break;
	case DW_EH_PE_udata4:
		value += cursor_u32(c);
		break;
	case DW_EH_PE_sdata4:
		value += (uint64_t)(int64_t)(int32_t)cursor_u32(c);
		break;
	case DW_EH_PE_udata2:
		value += cursor_u16(c);
		break;
	case DW_EH_PE_sdata2:
		value += (uint64_t)(int64_t)(int16_t)cursor_u16(c);
		break;
	default:
		return false;
	}
	*ret = value;
	return cursor_ok(c);
}

/* The augmentation string and its data; false: not understood. */
static bool read_augmentation(struct cursor *c, const char *text, struct cie *cie)
{
	struct cursor data;
	uint64_t length, ignored;
	uint8_t encoding;

	cie->fde_encoding = DW_EH_PE_absptr;
	if (text[0] == '\0')
		return true;
	if (text[0] != 'z' || !leb_read_u(c, &length) || length > cursor_left(c))
		return false;
	cie->sized_augmentation = true;
	data = cursor_make(cursor_take(c, (size_t)length), (size_t)length);
	for (const char *t = text + 1; *t; t++) {
		switch (*t) {
		case 'S':
			cie->signal_frame = true;
			break;
		case 'L':
			(void)cursor_u8(&data);
			break;
		case 'R':
			cie->fde_encoding = cursor_u8(&data);
			break;
		case 'P': /* the personality routine: its value does not matter, its size does */
			encoding = cursor_u8(&data);
			if ((encoding & 0x0f) == DW_EH_PE_uleb128)
				(void)leb_read_u(&data, &ignored);
			else if ((encoding & 0x07) == DW_EH_PE_udata2)
				(void)cursor_take(&data, 2);
			else
				(void)cursor_take(&data,
						  (encoding & 0x07) == DW_EH_PE_udata4 ? 4 : 8);
			break;
		case 'B': /* aarch64's key and tagged frames; they have no data */
		case 'G':
			break;
		default: /* 'z' gave the size, so an unknown rest can be skipped */
			return cursor_ok(&data);
		}
	}
	return cursor_ok(&data);
}

static int read_cie(const struct cfi_section *s, uint64_t offset, struct cie *ret)
{
	struct head h;
	struct cursor *c = &h.body;
	const char *augmentation;
	uint64_t ra;
	uint8_t version;

	if (ret->offset == offset)
		return 0;
	if (offset >= UINT32_MAX || !read_head(s, offset, &h) || !head_is_cie(s, &h))
		return -EBADMSG;
	*ret = (struct cie){.offset = UINT32_MAX};
	version = cursor_u8(c);
	augmentation = cursor_string(c);
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	/* Version 4 has the size of an address and of a segment selector. */
	if (version == 4 && (cursor_u8(c) != 8 || cursor_u8(c) != 0))
		return -EBADMSG;
	if (!leb_read_u(c, &ret->code_align) || !leb_read_s(c, &ret->data_align))
		return -EBADMSG;
	ra = version == 1 ? cursor_u8(c) : 0;
	if (version != 1 && !leb_read_u(c, &ra))
		return -EBADMSG;
	if (ra != ARCH_REG_RA || !read_augmentation(c, augmentation, ret))
		return -EBADMSG;
	ret->n_code = cursor_left(c);
	ret->code = cursor_take(c, ret->n_code);
	ret->offset = (uint32_t)offset;
	return cursor_ok(c) ? 0 : -EBADMSG;
}

/* cie: the CIE read last; a scan keeps it from one call to the next. */
static int read_fde_head(const struct cfi_section *s, struct head *h, struct cie *cie,
			 struct fde *ret)
{
	uint64_t cie_offset = s->eh ? h->id_offset - h->id : h->id, length;
	struct cursor *c = &h->body;
	int r;

	if (cie_offset >= s->data.n)
		return -EBADMSG;
	r = read_cie(s, cie_offset, cie);
	if (r < 0)
		return r;
	ret->cie = cie;
	if (!read_encoded(s, c, cie->fde_encoding, &ret->start) ||
	    !read_encoded(s, c, cie->fde_encoding & 0x0f, &length) ||
	    __builtin_add_overflow(ret->start, length, &ret->end))
		return -EBADMSG;
	return 0;
}

static int read_fde(const struct cfi_section *s, uint64_t offset, struct cie *cie, struct fde *ret)
{
	uint64_t length;
	struct head h;
	int r;

	if (!read_head(s, offset, &h) || head_is_cie(s, &h))
		return -EBADMSG;
	r = read_fde_head(s, &h, cie, ret);
	if (r < 0)
		return r;
	if (cie->sized_augmentation &&
	    (!leb_read_u(&h.body, &length) || !cursor_take(&h.body, (size_t)length)))
		return -EBADMSG;
	ret->n_code = cursor_left(&h.body);
	ret->code = cursor_take(&h.body, ret->n_code);
	return 0;
}

/* The index */

static int compare_refs(const void *a, const void *b)
{
	const struct fde_ref *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct scan {
	const struct unwind_module *m;
	const struct cfi_section *s;
	uint64_t at;
	struct fde_ref *refs; /* NULL: count only */
	uint32_t n, max;
};

/* Runs under the guard: allocates nothing. */
static int scan_fdes(void *arg)
{
	struct scan *scan = arg;
	const struct cfi_section *s = scan->s;
	struct cie cie = {.offset = UINT32_MAX};
	uint64_t at = 0;
	struct head h;
	struct fde fde;

	while (at < s->data.n && read_head(s, at, &h) && scan->n < scan->max) {
		if (!head_is_cie(s, &h) && read_fde_head(s, &h, &cie, &fde) == 0 &&
		    fde.start < fde.end && fde.start - scan->m->base < scan->m->span) {
			if (scan->refs)
				scan->refs[scan->n] = (struct fde_ref){
					(uint32_t)(fde.start - scan->m->base), (uint32_t)at};
			scan->n++;
		}
		at = h.next;
	}
	return 0;
}

static int build_index(struct unwind_module *m, struct cfi_section *s)
{
	struct scan scan = {.m = m, .s = s, .max = MAX_INDEX};
	int r;

	if (s->broken || s->data.n > MAX_SCAN_BYTES)
		return -EBADMSG;
	/* The index of an inflated section is made and evicted with it. */
	if (s->eh && !may_make(m->u, s))
		return -EBADMSG;
	s->broken = true;
	r = guard_run(scan_fdes, &scan);
	if (r < 0)
		return r;
	scan.max = scan.n;
	if (!rows_reserve(m, scan.n * sizeof(*scan.refs)))
		return -EBADMSG;
	scan.refs = calloc(scan.n ? scan.n : 1, sizeof(*scan.refs));
	if (scan.refs) {
		scan.n = 0;
		r = guard_run(scan_fdes, &scan);
	}
	if (!scan.refs || r < 0) {
		rows_release(m, scan.max * sizeof(*scan.refs));
		free(scan.refs);
		return scan.refs ? r : -EBADMSG;
	}
	qsort(scan.refs, scan.n, sizeof(*scan.refs), compare_refs);
	s->index = scan.refs;
	s->n_index = scan.n;
	s->n_index_reserved = scan.max;
	s->broken = false;
	return 0;
}

/* .eh_frame_hdr (LSB 10.6.2) */

static int use_header(void *arg)
{
	struct unwind_module *m = arg;
	struct cfi_section hdr = {.data = m->hdr};
	struct cursor c = cursor_make(m->hdr.data, m->hdr.n);
	uint8_t version = cursor_u8(&c), ptr = cursor_u8(&c), count = cursor_u8(&c),
		table = cursor_u8(&c);
	uint64_t eh_frame, n;

	if (version != 1 || !read_encoded(&hdr, &c, ptr, &eh_frame) ||
	    !read_encoded(&hdr, &c, count, &n))
		return -EBADMSG;
	if (eh_frame != m->eh_frame.data.addr || table != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
	    n == 0 || n > cursor_left(&c) / TABLE_PAIR)
		return -EBADMSG;
	m->eh_frame.table = c.cur;
	m->eh_frame.n_table = (uint32_t)n;
	m->eh_frame.table_addr = m->hdr.addr;
	return 0;
}

void entry_use_header(struct unwind_module *m)
{
	if (m->hdr.data && m->eh_frame.data.data)
		(void)guard_run(use_header, m);
}

/* Search */

struct search {
	struct unwind_module *m;
	struct cfi_section *s;
	uint64_t vaddr;
	struct cfi_entry *ret;
	uint64_t *gap_start, *gap_end;
};

static int32_t table_value(const struct cfi_section *s, uint32_t i, unsigned int field)
{
	int32_t v;

	memcpy(&v, s->table + (size_t)i * TABLE_PAIR + field * 4, sizeof(v));
	return v;
}

static uint64_t ref_start(const struct search *q, uint32_t i)
{
	if (q->s->table)
		return q->s->table_addr + (uint64_t)(int64_t)table_value(q->s, i, 0);
	return q->m->base + q->s->index[i].start;
}

static uint64_t ref_offset(const struct search *q, uint32_t i)
{
	if (q->s->table)
		return q->s->table_addr + (uint64_t)(int64_t)table_value(q->s, i, 1) -
		       q->s->data.addr;
	return q->s->index[i].offset;
}

static int copy_entry(const struct fde *fde, struct cfi_entry *ret)
{
	const struct cie *cie = fde->cie;

	if (cie->n_code > ENTRY_MAX_CIE_BYTES || fde->n_code > ENTRY_MAX_FDE_BYTES)
		return -EBADMSG;
	ret->start = fde->start;
	ret->end = fde->end;
	ret->code_align = cie->code_align;
	ret->data_align = cie->data_align;
	ret->signal_frame = cie->signal_frame;
	ret->absolute = (cie->fde_encoding & 0x7f) == DW_EH_PE_absptr;
	ret->n_cie_code = (uint32_t)cie->n_code;
	ret->n_fde_code = (uint32_t)fde->n_code;
	memcpy(ret->cie_code, cie->code, cie->n_code);
	memcpy(ret->fde_code, fde->code, fde->n_code);
	return 0;
}

static int search(void *arg)
{
	struct search *q = arg;
	uint32_t n = q->s->table ? q->s->n_table : q->s->n_index;
	uint32_t at = bisect(n, i, ref_start(q, i) <= q->vaddr);
	struct cie cie = {.offset = UINT32_MAX};
	struct fde fde;
	uint64_t next;
	int r;

	if (at < n) {
		next = ref_start(q, at);
		if (next > q->vaddr && next < *q->gap_end)
			*q->gap_end = next;
	}
	if (at == 0)
		return -ENOENT;
	r = read_fde(q->s, ref_offset(q, at - 1), &cie, &fde);
	if (r < 0)
		return r;
	if (q->vaddr < fde.start)
		return -EBADMSG;
	if (q->vaddr >= fde.end) {
		if (fde.end > *q->gap_start)
			*q->gap_start = fde.end;
		return -ENOENT;
	}
	return copy_entry(&fde, q->ret);
}

int entry_find(struct unwind_module *m, struct cfi_section *s, uint64_t vaddr,
	       struct cfi_entry *ret, uint64_t *gap_start, uint64_t *gap_end)
{
	struct search q = {m, s, vaddr, ret, gap_start, gap_end};
	int r = 0;

	if (!s->data.data)
		return -ENOENT;
	if (!s->table && !s->index)
		r = build_index(m, s);
	if (r == 0)
		r = guard_run(search, &q);
	if (r == 0)
		m->u->work += ret->n_cie_code + ret->n_fde_code;
	if (r == -EIO)
		m->broken = true;
	return r;
}
