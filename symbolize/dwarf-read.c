/* SPDX-License-Identifier: Apache-2.0 */
/* Sections, numbers and attributes of DWARF, all read within bounds. */
#include <dwarf.h>
#include <elf.h>

#include "symbolize/dwarf-internal.h"

#define MAX_TEXT 65536 /* bytes of one name */

/* ---- Sections ---- */

static int section_load(struct dwarf *d, struct dwarf_section_state *s)
{
	uint64_t room = d->limits.max_inflate_dwarf_bytes, mapped;
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
	int r;

	if (d->main && (which == DWARF_ADDR || which == DWARF_RANGES))
		return dwarf_section(d->main, which);
	r = !s->bytes.data && !s->bad && s->header.size ? section_load(d, s) : 0;
	if (r < 0) {
		s->bad = true;
		dwarf_refuse(d, r);
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

/* ---- Attributes ---- */

uint32_t dwarf_form_size(const struct dwarf_unit *u, uint16_t form)
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
	size = dwarf_form_size(u, v.form);
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
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return d->alt ? text_at(d->alt, DWARF_STR, v->u) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
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

uint64_t dwarf_value_alt_reference(const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return v->u;
	default:
		return UINT64_MAX;
	}
}
