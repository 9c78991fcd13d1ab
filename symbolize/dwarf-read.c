/* SPDX-License-Identifier: Apache-2.0 */
/* Sections, abbreviations and attributes: the bytes of DWARF, each read within its bounds. */
#include <dwarf.h>
#include <elf.h>

#include "symbolize/dwarf-internal.h"

/* A compiler makes some hundred abbreviations for a unit, with up to 20 attributes. */
#define MAX_ABBREVS 65536
#define MAX_SPECS   (1u << 20)
#define MAX_TEXT    65536 /* bytes of one name */
/* Bytes of abbreviations before the one of a unit's first entry. */
#define MAX_ROOT_SEARCH 65536

/* ---- Sections ---- */

static int section_load(struct dwarf *d, struct dwarf_section_state *s)
{
	uint64_t room = d->limits.max_inflate_bytes, mapped;
	int r;

	r = elf_image_bytes(&d->image, &s->header, d->limits.max_dwarf_bytes - d->n_mapped,
			    &s->bytes);
	if (r < 0)
		return r;
	mapped = s->bytes.n;
	if (s->bytes.compressed) {
		room = room > d->n_inflated ? room - d->n_inflated : 0;
		r = elf_bytes_inflate(&s->bytes, d->image.is64, room);
		if (r < 0) {
			elf_bytes_release(&s->bytes);
			return r;
		}
		d->n_inflated += s->bytes.n;
		return 0;
	}
	d->n_mapped += mapped;
	return 0;
}

struct cursor dwarf_section(struct dwarf *d, enum dwarf_section which)
{
	struct dwarf_section_state *s = &d->sections[which];

	if (!s->bytes.data && !s->bad && s->header.size && section_load(d, s) < 0) {
		s->bad = true;
		d->n_refused++;
	}
	return s->bytes.data ? cursor_make(s->bytes.data, s->bytes.n) : cursor_make("", 0);
}

struct cursor dwarf_section_at(struct dwarf *d, enum dwarf_section which, uint64_t offset)
{
	struct cursor c = dwarf_section(d, which);

	if (offset > cursor_left(&c))
		c.failed = true;
	else
		c.cur += offset;
	return c;
}

void dwarf_sections_release(struct dwarf *d, bool inflated_too)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		struct dwarf_section_state *s = &d->sections[i];

		if (s->bytes.heap && !inflated_too)
			continue;
		if (s->bytes.heap)
			d->n_inflated -= s->bytes.n;
		else
			d->n_mapped -= s->bytes.data ? s->bytes.n : 0;
		elf_bytes_release(&s->bytes);
	}
}

/* ---- Numbers ---- */

uint64_t dwarf_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->failed = true;
	return 0;
}

int64_t dwarf_sleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			v |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)v;
	}
	c->failed = true;
	return 0;
}

uint64_t dwarf_uint(struct cursor *c, unsigned int size)
{
	uint64_t low;

	switch (size) {
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 3:
		low = cursor_u16(c);
		return low | (uint64_t)cursor_u8(c) << 16;
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	default:
		c->failed = true;
		return 0;
	}
}

uint64_t dwarf_length(struct cursor *c, uint8_t *ret_offset_size)
{
	uint64_t n = cursor_u32(c);

	*ret_offset_size = 4;
	if (n == UINT32_MAX) {
		*ret_offset_size = 8;
		n = cursor_u64(c);
	} else if (n >= 0xfffffff0) {
		c->failed = true;
	}
	if (n > cursor_left(c))
		c->failed = true;
	return cursor_ok(c) ? n : 0;
}

/* ---- Abbreviations ---- */

/* Bytes of a form in that unit; DWARF_NONE: it depends on the value. */
static uint32_t form_size(const struct dwarf_unit *u, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->address_size;
	case DW_FORM_ref_addr:
		return u->version <= 2 ? u->address_size : u->offset_size;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->offset_size;
	default:
		return DWARF_NONE;
	}
}

/* One declaration, its code already read. 0; -ENOEXEC, -EFBIG, -ENOMEM. */
static int abbrev_read(struct cursor *c, const struct dwarf_unit *u, uint64_t code,
		       struct dwarf_abbrevs *ret)
{
	struct dwarf_abbrev a = {.code = code, .first = ret->specs.n};

	a.tag = (uint16_t)dwarf_uleb(c);
	a.children = cursor_u8(c);
	for (;;) {
		uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);
		int64_t constant = form == DW_FORM_implicit_const ? dwarf_sleb(c) : 0;
		struct dwarf_spec *s;
		uint32_t size;

		if (!cursor_ok(c) || form > UINT16_MAX || name > UINT16_MAX)
			return -ENOEXEC;
		if (name == 0 && form == 0)
			break;
		if (ret->specs.n == MAX_SPECS)
			return -EFBIG;
		s = array_push(&ret->specs);
		if (!s)
			return -ENOMEM;
		*s = (struct dwarf_spec){(uint16_t)name, (uint16_t)form, (int32_t)constant};
		size = form_size(u, s->form);
		a.fixed = size == DWARF_NONE || a.fixed == DWARF_NONE ? DWARF_NONE : a.fixed + size;
		a.n++;
	}
	if (ret->items.n == MAX_ABBREVS)
		return -EFBIG;
	if (!array_push(&ret->items))
		return -ENOMEM;
	ret->items.items[ret->items.n - 1] = a;
	ret->dense = ret->dense && code == ret->items.n;
	return 0;
}

static int compare_codes(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static void abbrevs_init(struct dwarf_abbrevs *a)
{
	*a = (struct dwarf_abbrevs){
		.items = ARRAY_INIT(MAX_ABBREVS), .specs = ARRAY_INIT(MAX_SPECS), .dense = true};
}

const struct dwarf_abbrevs *dwarf_unit_abbrevs(struct dwarf *d, struct dwarf_unit *u)
{
	struct dwarf_abbrevs *a;
	struct cursor c;
	uint64_t code;
	int r = 0;

	u->used = d->turn;
	if (u->abbrevs)
		return u->abbrevs;
	c = dwarf_section_at(d, DWARF_ABBREV, u->abbrev_offset);
	a = malloc(sizeof(*a));
	if (!a)
		return NULL;
	abbrevs_init(a);
	while (r == 0 && (code = dwarf_uleb(&c)) != 0) {
		const uint8_t *start = c.cur;

		r = abbrev_read(&c, u, code, a);
		if (!dwarf_work(d, (uint64_t)(c.cur - start)))
			r = -EFBIG;
	}
	if (r < 0 || !cursor_ok(&c)) {
		dwarf_abbrevs_free(a);
		return NULL;
	}
	if (!a->dense)
		qsort(a->items.items, a->items.n, sizeof(*a->items.items), compare_codes);
	u->abbrevs = a;
	return dwarf_unit_account(d, u) ? a : NULL;
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *a, uint64_t code)
{
	struct dwarf_abbrev key = {.code = code};

	if (a->dense)
		return code - 1 < a->items.n ? &a->items.items[code - 1] : NULL;
	return bsearch(&key, a->items.items, a->items.n, sizeof(key), compare_codes);
}

static int abbrevs_drop(struct dwarf_abbrevs *a)
{
	array_deinit(&a->items);
	array_deinit(&a->specs);
	return -ENOEXEC;
}

int dwarf_abbrev_read_one(struct dwarf *d, const struct dwarf_unit *u, uint64_t code,
			  struct dwarf_abbrevs *ret)
{
	struct cursor c = dwarf_section_at(d, DWARF_ABBREV, u->abbrev_offset);
	const uint8_t *start = c.cur;
	uint64_t have;
	int r;

	abbrevs_init(ret);
	while (c.cur - start < MAX_ROOT_SEARCH && (have = dwarf_uleb(&c)) != 0) {
		array_clear(&ret->items);
		array_clear(&ret->specs);
		r = abbrev_read(&c, u, have, ret);
		if (r < 0)
			break;
		if (have == code)
			return dwarf_work(d, (uint64_t)(c.cur - start)) ? 0 : abbrevs_drop(ret);
	}
	(void)dwarf_work(d, (uint64_t)(c.cur - start));
	return abbrevs_drop(ret);
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *a)
{
	if (!a)
		return;
	array_deinit(&a->items);
	array_deinit(&a->specs);
	free(a);
}

/* ---- Attributes ---- */

static bool block_skip(struct cursor *c, uint64_t n)
{
	return n <= cursor_left(c) && cursor_take(c, (size_t)n);
}

bool dwarf_value_read(struct cursor *c, const struct dwarf_unit *u, const struct dwarf_spec *spec,
		      struct dwarf_value *ret)
{
	struct dwarf_value v = {.form = spec->form};
	uint32_t size;

	if (v.form == DW_FORM_indirect) {
		uint64_t form = dwarf_uleb(c);

		if (form > UINT16_MAX || form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			return false;
		v.form = (uint16_t)form;
	}
	size = form_size(u, v.form);
	switch (v.form) {
	case DW_FORM_flag_present:
		v.u = 1;
		break;
	case DW_FORM_implicit_const:
		v.u = (uint64_t)(int64_t)spec->constant;
		break;
	case DW_FORM_string:
		v.text = cursor_string(c);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		v.u = dwarf_uleb(c);
		break;
	case DW_FORM_sdata:
		v.u = (uint64_t)dwarf_sleb(c);
		break;
	case DW_FORM_exprloc:
	case DW_FORM_block:
		return block_skip(c, dwarf_uleb(c));
	case DW_FORM_block1:
		return block_skip(c, cursor_u8(c));
	case DW_FORM_block2:
		return block_skip(c, cursor_u16(c));
	case DW_FORM_block4:
		return block_skip(c, cursor_u32(c));
	case DW_FORM_data16:
		return block_skip(c, 16);
	default:
		if (size == DWARF_NONE)
			return false;
		v.u = dwarf_uint(c, size);
	}
	*ret = v;
	return cursor_ok(c);
}

static const char *text_at(struct dwarf *d, enum dwarf_section which, uint64_t offset)
{
	struct cursor c = dwarf_section_at(d, which, offset);

	if (cursor_left(&c) > MAX_TEXT)
		c.end = c.cur + MAX_TEXT;
	return cursor_string(&c);
}

static const char *indexed_text(struct dwarf *d, const struct dwarf_unit *u, uint64_t index)
{
	struct cursor c;
	uint64_t offset;

	if (index > UINT32_MAX ||
	    __builtin_add_overflow(u->str_offsets_base, index * u->offset_size, &offset))
		return NULL;
	c = dwarf_section_at(d, DWARF_STR_OFFSETS, offset);
	offset = dwarf_uint(&c, u->offset_size);
	return cursor_ok(&c) ? text_at(d, DWARF_STR, offset) : NULL;
}

const char *dwarf_value_text(struct dwarf *d, const struct dwarf_unit *u,
			     const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_string:
		return v->text;
	case DW_FORM_strp:
		return text_at(d, DWARF_STR, v->u);
	case DW_FORM_line_strp:
		return text_at(d, DWARF_LINE_STR, v->u);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		return indexed_text(d, u, v->u);
	default:
		return NULL;
	}
}

bool dwarf_value_address(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v,
			 uint64_t *ret)
{
	struct cursor c;
	uint64_t offset;

	switch (v->form) {
	case DW_FORM_addr:
		*ret = v->u;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		if (v->u > UINT32_MAX ||
		    __builtin_add_overflow(u->addr_base, v->u * u->address_size, &offset))
			return false;
		c = dwarf_section_at(d, DWARF_ADDR, offset);
		*ret = dwarf_uint(&c, u->address_size);
		return cursor_ok(&c);
	default:
		return false;
	}
}

uint64_t dwarf_value_reference(const struct dwarf_unit *u, const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return v->u < u->end - u->offset ? u->offset + v->u : UINT64_MAX;
	case DW_FORM_ref_addr:
		return v->u;
	default:
		return UINT64_MAX;
	}
}
