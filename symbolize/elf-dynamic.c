/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic symbol table as a loader finds it, by PT_DYNAMIC, for files without section headers
 * (sstrip and some packers remove them). The number of symbols follows from the hash tables:
 * DT_HASH has a chain entry for each, DT_GNU_HASH ends with the chain that begins last.
 */
#include <elf.h>

#include "symbolize/elf-image.h"
#include "util/cursor.h"

#define MAX_ENTRIES    4096 /* of the dynamic segment; linkers make about 30 */
#define MAX_SYMBOLS    (1u << 24)
#define MAX_HASH_BYTES (UINT64_C(256) << 20)

struct dynamic {
	uint64_t symbols, strings, n_strings, hash, gnu_hash; /* addresses; 0: none */
};

/* The file offset of an address, and the bytes from there to the end of its segment. */
static bool address_locate(const struct elf_image *im, uint64_t address, uint64_t *ret_offset,
			   uint64_t *ret_n)
{
	for (uint32_t i = 0; i < im->n_segments; i++) {
		const struct elf_segment *s = &im->segments[i];

		if (s->type != PT_LOAD || address < s->vaddr || address - s->vaddr >= s->filesz ||
		    s->offset > im->n_bytes || s->filesz > im->n_bytes - s->offset)
			continue;
		*ret_offset = s->offset + (address - s->vaddr);
		*ret_n = s->filesz - (address - s->vaddr);
		return true;
	}
	return false;
}

static bool word_read(const struct elf_image *im, uint64_t address, uint32_t *ret)
{
	uint64_t offset, n;

	return address_locate(im, address, &offset, &n) && n >= sizeof(*ret) &&
	       elf_image_read(im, offset, ret, sizeof(*ret)) == 0;
}

static void dynamic_read(const struct elf_image *im, const struct elf_segment *s,
			 struct dynamic *ret)
{
	size_t size = im->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);

	for (uint32_t i = 0; i < MAX_ENTRIES && (i + 1) * size <= s->filesz; i++) {
		uint8_t raw[sizeof(Elf64_Dyn)];
		struct cursor c = cursor_make(raw, size);
		uint64_t tag, value;

		if (elf_image_read(im, s->offset + i * size, raw, size) < 0)
			return;
		tag = im->is64 ? cursor_u64(&c) : cursor_u32(&c);
		value = im->is64 ? cursor_u64(&c) : cursor_u32(&c);
		switch (tag) {
		case DT_NULL:
			return;
		case DT_SYMTAB:
			ret->symbols = value;
			break;
		case DT_STRTAB:
			ret->strings = value;
			break;
		case DT_STRSZ:
			ret->n_strings = value;
			break;
		case DT_HASH:
			ret->hash = value;
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = value;
			break;
		default:
			break;
		}
	}
}

/* The number of symbols that DT_GNU_HASH reaches: the last chain ends with the last symbol. */
static uint32_t gnu_hash_walk(struct cursor c, bool is64)
{
	uint32_t n_buckets = cursor_u32(&c), first = cursor_u32(&c), n_bloom = cursor_u32(&c);
	uint32_t last = 0;

	(void)cursor_u32(&c);
	if (n_buckets > MAX_SYMBOLS || n_bloom > MAX_SYMBOLS)
		return 0;
	(void)cursor_take(&c, (size_t)n_bloom * (is64 ? 8 : 4));
	for (uint32_t i = 0; i < n_buckets && cursor_ok(&c); i++) {
		uint32_t begin = cursor_u32(&c);

		last = begin > last ? begin : last;
	}
	if (last < first)
		return cursor_ok(&c) ? first : 0;
	(void)cursor_take(&c, 4 * (size_t)(last - first));
	while (cursor_ok(&c) && last < MAX_SYMBOLS) {
		last++;
		if (cursor_u32(&c) & 1)
			return cursor_ok(&c) ? last : 0;
	}
	return 0;
}

static uint32_t gnu_hash_count(const struct elf_image *im, uint64_t address)
{
	struct elf_section table = {.type = SHT_GNU_HASH};
	struct elf_bytes b = {0};
	uint32_t n;

	if (!address_locate(im, address, &table.offset, &table.size))
		return 0;
	table.size = table.size < MAX_HASH_BYTES ? table.size : MAX_HASH_BYTES;
	if (elf_image_bytes(im, &table, MAX_HASH_BYTES, &b) < 0)
		return 0;
	n = gnu_hash_walk(cursor_make(b.data, b.n), im->is64);
	elf_bytes_release(&b);
	return n;
}

bool elf_dynamic_symbols(const struct elf_image *im, struct elf_section *ret_symbols,
			 struct elf_section *ret_strings)
{
	size_t size = im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct elf_section symbols = {.type = SHT_DYNSYM}, strings = {.type = SHT_STRTAB};
	struct dynamic d = {0};
	uint32_t n = 0;
	uint64_t room;

	for (uint32_t i = 0; i < im->n_segments; i++)
		if (im->segments[i].type == PT_DYNAMIC)
			dynamic_read(im, &im->segments[i], &d);
	if (d.hash)
		(void)word_read(im, d.hash + 4, &n);
	else if (d.gnu_hash)
		n = gnu_hash_count(im, d.gnu_hash);
	if (n == 0 || n > MAX_SYMBOLS || !address_locate(im, d.symbols, &symbols.offset, &room) ||
	    n > room / size || !address_locate(im, d.strings, &strings.offset, &room) ||
	    d.n_strings > room)
		return false;
	symbols.size = n * size;
	strings.size = d.n_strings;
	*ret_symbols = symbols;
	*ret_strings = strings;
	return true;
}
