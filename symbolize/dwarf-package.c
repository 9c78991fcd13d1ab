/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages of split files (.dwp): the sections of many .dwo files one after another, and an index
 * from the id of each unit to its part of each section. A part equals the section of the .dwo file,
 * so the parts are read like a .dwo file.
 *
 * The index (.debug_cu_index) is a hash table with open addressing: ids, the rows they point to,
 * then a table of offsets and one of sizes with a column for each kind of section. Version 2 is
 * GNU's extension to DWARF 4; version 5 is that of DWARF 5 (section 7.3.5), with other numbers for
 * the kinds. A package with compressed sections is refused: no tool makes one.
 */
#include <elf.h>
#include <errno.h>

#include "symbolize/dwarf-internal.h"

#define MAX_INDEX_BYTES (UINT64_C(64) << 20) /* half a million units */
#define MAX_KINDS	16
/* Tables are at most two thirds full, so probing takes few steps. */
#define MAX_PROBES 1024

struct dwarf_package {
	struct elf_image image; /* we own its descriptor */
	struct elf_bytes index;
	uint32_t version, n_kinds, n_units, n_slots;
};

static const struct {
	const char *name;
	uint8_t v2, v5; /* the number of the kind; 0: none, all units share the section */
} package_sections[DWARF_N_SECTIONS] = {
	[DWARF_INFO] = {".debug_info.dwo", 1, 1},
	[DWARF_ABBREV] = {".debug_abbrev.dwo", 3, 3},
	[DWARF_STR] = {".debug_str.dwo", 0, 0},
	[DWARF_STR_OFFSETS] = {".debug_str_offsets.dwo", 6, 6},
	[DWARF_RNGLISTS] = {".debug_rnglists.dwo", 0, 8},
};

static int index_read(struct dwarf_package *p)
{
	struct cursor c = cursor_make(p->index.data, p->index.n);
	uint64_t n_bytes;

	p->version = cursor_u16(&c); /* 2 has 4 bytes for it, 5 has 2 and padding */
	(void)cursor_u16(&c);
	p->n_kinds = cursor_u32(&c);
	p->n_units = cursor_u32(&c);
	p->n_slots = cursor_u32(&c);
	if (!cursor_ok(&c) || (p->version != 2 && p->version != 5) || p->n_kinds == 0 ||
	    p->n_kinds > MAX_KINDS || p->n_slots == 0 || (p->n_slots & (p->n_slots - 1)))
		return -ENOEXEC;
	/* This cannot overflow: each has 32 bits, and there are few kinds. */
	n_bytes = (uint64_t)p->n_slots * 12 + (1 + 2 * (uint64_t)p->n_units) * p->n_kinds * 4;
	return n_bytes <= cursor_left(&c) ? 0 : -ENOEXEC;
}

int dwarf_package_new(struct dwarf_package **ret, int fd)
{
	struct dwarf_package *p = calloc(1, sizeof(*p));
	const struct elf_section *s;
	int r;

	if (!p) {
		(void)close_fd(fd);
		return -ENOMEM;
	}
	p->image = (struct elf_image)ELF_IMAGE_INIT;
	r = elf_image_open_fd(&p->image, fd);
	p->image.fd = fd;
	s = r == 0 ? elf_image_find(&p->image, ".debug_cu_index") : NULL;
	if (r == 0)
		r = s && !(s->flags & SHF_COMPRESSED) ? 0 : -ENOEXEC;
	if (r == 0)
		r = elf_image_bytes(&p->image, s, MAX_INDEX_BYTES, &p->index);
	if (r == 0)
		r = index_read(p);
	if (r < 0) {
		(void)dwarf_package_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct dwarf_package *dwarf_package_free(struct dwarf_package *p)
{
	if (!p)
		return NULL;
	elf_bytes_release(&p->index);
	(void)close_fd(p->image.fd);
	elf_image_close(&p->image);
	free(p);
	return NULL;
}

size_t dwarf_package_bytes(const struct dwarf_package *p)
{
	return sizeof(*p) + p->image.n_sections * sizeof(struct elf_section);
}

const struct elf_image *dwarf_package_image(const struct dwarf_package *p)
{
	return &p->image;
}

/* A number of the index, after its header. The caller knows that it is within bounds. */
static uint32_t index_u32(const struct dwarf_package *p, uint64_t at)
{
	uint32_t v;

	memcpy(&v, p->index.data + 16 + at, sizeof(v));
	return v;
}

/* The row of a unit, from 0; UINT32_MAX: not there. */
static uint32_t index_find(const struct dwarf_package *p, uint64_t id)
{
	uint64_t mask = p->n_slots - 1, slot = id & mask, step = (id >> 32 & mask) | 1;

	for (uint32_t i = 0; i < MAX_PROBES; i++, slot = (slot + step) & mask) {
		uint64_t have = (uint64_t)index_u32(p, slot * 8 + 4) << 32 | index_u32(p, slot * 8);
		uint32_t row = index_u32(p, (uint64_t)p->n_slots * 8 + slot * 4);

		if (row == 0)
			break;
		if (have == id)
			return row <= p->n_units ? row - 1 : UINT32_MAX;
	}
	return UINT32_MAX;
}

/* Offset and size of one kind of section in a row; false: the unit has no such section. */
static bool row_read(const struct dwarf_package *p, uint32_t row, uint32_t kind,
		     uint32_t *ret_offset, uint32_t *ret_size)
{
	uint64_t kinds = (uint64_t)p->n_slots * 12, offsets = kinds + 4 * (uint64_t)p->n_kinds;
	uint64_t sizes = offsets + 4 * (uint64_t)p->n_kinds * p->n_units;

	for (uint32_t i = 0; i < p->n_kinds; i++) {
		uint64_t at = 4 * ((uint64_t)row * p->n_kinds + i);

		if (index_u32(p, kinds + 4 * (uint64_t)i) != kind)
			continue;
		*ret_offset = index_u32(p, offsets + at);
		*ret_size = index_u32(p, sizes + at);
		return true;
	}
	return false;
}

bool dwarf_package_find(const struct dwarf_package *p, uint64_t dwo_id,
			struct dwarf_section_state sections[DWARF_N_SECTIONS])
{
	uint32_t row = index_find(p, dwo_id), offset, size;

	if (row == UINT32_MAX)
		return false;
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		uint32_t kind = p->version == 5 ? package_sections[i].v5 : package_sections[i].v2;
		struct elf_section *s = &sections[i].header;

		if (!kind || s->size == 0)
			continue;
		if (!row_read(p, row, kind, &offset, &size) || s->flags & SHF_COMPRESSED ||
		    offset > s->size || size > s->size - offset) {
			*s = (struct elf_section){0};
			continue;
		}
		s->offset += offset;
		s->size = size;
	}
	return true;
}
