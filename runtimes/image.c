/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>

#include "runtimes/image.h"

enum {
	MAX_SEGMENTS = 64,
	MAX_DYNAMIC = 256,
	MAX_CHAIN = 1024, /* of a hash bucket: real ones have a few */
};
#define MAX_IMAGE (UINT64_C(4) << 30)

static bool is_library(const Elf64_Ehdr *e)
{
	return memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 && e->e_ident[EI_CLASS] == ELFCLASS64 &&
	       e->e_ident[EI_DATA] == ELFDATA2LSB && e->e_phentsize == sizeof(Elf64_Phdr) &&
	       e->e_phnum > 0 && e->e_phnum <= MAX_SEGMENTS;
}

/* The ends of what is loaded, and where the dynamic section is; false: not sound. */
static bool read_segments(struct image *i, const Elf64_Ehdr *e, Elf64_Phdr *ret_dynamic)
{
	uint64_t low = UINT64_MAX, high = 0;
	Elf64_Phdr p;

	ret_dynamic->p_memsz = 0;
	for (uint16_t k = 0; k < e->e_phnum; k++) {
		if (!memory_read(i->memory, i->base + e->e_phoff + k * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_DYNAMIC)
			*ret_dynamic = p;
		if (p.p_type == PT_GNU_EH_FRAME)
			i->frame_table = p.p_vaddr;
		if (p.p_type == PT_TLS) {
			i->thread_bytes = p.p_memsz;
			i->thread_align = p.p_align ? p.p_align : 1;
		}
		if (p.p_type != PT_LOAD)
			continue;
		if (p.p_offset == 0)
			i->bias = i->base - p.p_vaddr;
		if (p.p_vaddr < low)
			low = p.p_vaddr;
		if (p.p_vaddr + p.p_memsz > high)
			high = p.p_vaddr + p.p_memsz;
	}
	if (low >= high || high - low > MAX_IMAGE || ret_dynamic->p_memsz == 0)
		return false;
	if (i->frame_table)
		i->frame_table += i->bias;
	i->start = i->bias + low;
	i->end = i->bias + high;
	return true;
}

/* The loader has made them addresses, or it has not (the vdso, musl). */
static uint64_t relocated(const struct image *i, uint64_t value)
{
	return value >= i->start && value < i->end ? value : value + i->bias;
}

static void take_dynamic(struct image *i, const Elf64_Dyn *d)
{
	switch (d->d_tag) {
	case DT_SYMTAB:
		i->symbols = relocated(i, d->d_un.d_ptr);
		break;
	case DT_STRTAB:
		i->strings = relocated(i, d->d_un.d_ptr);
		break;
	case DT_STRSZ:
		i->n_strings = d->d_un.d_val;
		break;
	case DT_GNU_HASH:
		i->gnu_hash = relocated(i, d->d_un.d_ptr);
		break;
	case DT_HASH:
		i->hash = relocated(i, d->d_un.d_ptr);
		break;
	case DT_RELA:
		i->relocations = relocated(i, d->d_un.d_ptr);
		break;
	case DT_RELASZ:
		i->n_relocations = d->d_un.d_val;
		break;
	case DT_JMPREL:
		i->plt_relocations = relocated(i, d->d_un.d_ptr);
		break;
	case DT_PLTRELSZ:
		i->n_plt_relocations = d->d_un.d_val;
		break;
	case DT_DEBUG: /* the loader gives it to the program alone */
		i->is_program = true;
		break;
	default:
		break;
	}
}

bool image_open(struct image *ret, struct memory *memory, uint64_t base)
{
	struct image i = {.memory = memory, .base = base};
	Elf64_Phdr dynamic;
	Elf64_Ehdr e;

	if (!memory_read(memory, base, &e, sizeof(e)) || !is_library(&e) ||
	    !read_segments(&i, &e, &dynamic))
		return false;
	for (uint64_t k = 0; k < MAX_DYNAMIC && k < dynamic.p_memsz / sizeof(Elf64_Dyn); k++) {
		Elf64_Dyn d;

		if (!memory_read(memory, i.bias + dynamic.p_vaddr + k * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		take_dynamic(&i, &d);
	}
	if (!i.symbols || !i.strings || (!i.gnu_hash && !i.hash))
		return false;
	*ret = i;
	return true;
}

/* false: the symbol of that index is another. */
static bool is_symbol(const struct image *i, uint32_t index, const char *name, Elf64_Sym *ret)
{
	char text[128];
	Elf64_Sym s;

	if (!memory_read(i->memory, i->symbols + index * sizeof(s), &s, sizeof(s)) ||
	    s.st_shndx == SHN_UNDEF || s.st_name >= i->n_strings ||
	    !memory_text(i->memory, i->strings + s.st_name, text, sizeof(text)) ||
	    strcmp(text, name) != 0)
		return false;
	*ret = s;
	return true;
}

static bool find_by_gnu_hash(const struct image *i, const char *name, Elf64_Sym *ret)
{
	uint32_t head[4], bucket, hash = 5381, h; /* buckets, first, words of the filter */
	uint64_t buckets, chain;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	if (!memory_read(i->memory, i->gnu_hash, head, sizeof(head)) || head[0] == 0)
		return false;
	buckets = i->gnu_hash + sizeof(head) + (uint64_t)head[2] * 8;
	chain = buckets + (uint64_t)head[0] * 4;
	if (!memory_read(i->memory, buckets + (uint64_t)(hash % head[0]) * 4, &bucket,
			 sizeof(bucket)) ||
	    bucket < head[1])
		return false;
	for (uint32_t k = 0; k < MAX_CHAIN; k++) {
		if (!memory_read(i->memory, chain + ((uint64_t)bucket + k - head[1]) * 4, &h,
				 sizeof(h)))
			return false;
		if ((h | 1) == (hash | 1) && is_symbol(i, bucket + k, name, ret))
			return true;
		if (h & 1)
			return false;
	}
	return false;
}

/* The System V ABI's table. */
static bool find_by_hash(const struct image *i, const char *name, Elf64_Sym *ret)
{
	uint32_t head[2], index, hash = 0; /* buckets, symbols */
	uint64_t at;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	if (!memory_read(i->memory, i->hash, head, sizeof(head)) || head[0] == 0)
		return false;
	at = i->hash + sizeof(head) + (uint64_t)(hash % head[0]) * 4;
	for (uint32_t k = 0; k < MAX_CHAIN; k++) {
		if (!memory_read(i->memory, at, &index, sizeof(index)) || index == 0 ||
		    index >= head[1])
			return false;
		if (is_symbol(i, index, name, ret))
			return true;
		at = i->hash + sizeof(head) + ((uint64_t)head[0] + index) * 4;
	}
	return false;
}

static bool find_symbol(const struct image *i, const char *name, Elf64_Sym *ret)
{
	return i->gnu_hash ? find_by_gnu_hash(i, name, ret) : find_by_hash(i, name, ret);
}

bool image_symbol_is(const struct image *i, uint32_t index, const char *name)
{
	Elf64_Sym s;

	return is_symbol(i, index, name, &s);
}

bool image_thread_symbol(const struct image *i, const char *name, uint64_t *ret)
{
	Elf64_Sym s;

	if (!find_symbol(i, name, &s) || ELF64_ST_TYPE(s.st_info) != STT_TLS)
		return false;
	*ret = s.st_value;
	return true;
}

uint64_t image_symbol(const struct image *i, const char *name)
{
	Elf64_Sym s;

	return find_symbol(i, name, &s) ? i->bias + s.st_value : 0;
}

bool image_symbol_range(const struct image *i, const char *name, uint64_t *ret_start,
			uint64_t *ret_end)
{
	Elf64_Sym s;

	if (!find_symbol(i, name, &s))
		return false;
	*ret_start = i->bias + s.st_value;
	*ret_end = *ret_start + s.st_size;
	return true;
}

/* ---- Call frame information ---- */

/* A row of .eh_frame_hdr's table: distances from its beginning to a function and its FDE. */
struct frame_row {
	int32_t function, fde;
};

/* The last row whose function begins at or before pc. */
static bool find_row(const struct image *i, uint32_t n, int64_t pc, struct frame_row *ret)
{
	uint32_t low = 0;
	struct frame_row row;

	while (low < n) {
		uint32_t middle = low + (n - low) / 2;

		if (!memory_read(i->memory, i->frame_table + 12 + (uint64_t)middle * sizeof(row),
				 &row, sizeof(row)))
			return false;
		if (row.function <= pc) {
			*ret = row;
			low = middle + 1;
		} else {
			n = middle;
		}
	}
	return low > 0;
}

/* Reads only the form of .eh_frame_hdr that all linkers write, and the form of FDEs that compilers
 * write. */
bool image_code_range(const struct image *i, uint64_t pc, uint64_t *ret_start, uint64_t *ret_end)
{
	enum { PC_RELATIVE_4 = 0x1b, UNSIGNED_4 = 3, TABLE_RELATIVE_4 = 0x3b, MAX_ROWS = 1 << 22 };
	struct {
		uint8_t version, pointer, count, table;
		int32_t frames;
		uint32_t n;
	} head;
	struct {
		uint32_t length, cie;
		int32_t start;
		uint32_t n;
	} fde;
	struct frame_row row;
	uint64_t at;

	if (!i->frame_table || pc < i->start || pc >= i->end ||
	    !memory_read(i->memory, i->frame_table, &head, sizeof(head)) || head.version != 1 ||
	    head.pointer != PC_RELATIVE_4 || head.count != UNSIGNED_4 ||
	    head.table != TABLE_RELATIVE_4 || head.n > MAX_ROWS ||
	    !find_row(i, head.n, (int64_t)(pc - i->frame_table), &row))
		return false;
	at = i->frame_table + (uint64_t)(int64_t)row.fde;
	if (!memory_read(i->memory, at, &fde, sizeof(fde)) ||
	    at + 8 + (uint64_t)(int64_t)fde.start !=
		    i->frame_table + (uint64_t)(int64_t)row.function)
		return false;
	*ret_start = i->frame_table + (uint64_t)(int64_t)row.function;
	*ret_end = *ret_start + fde.n;
	return pc < *ret_end;
}
