/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes name@plt. The instructions of a stub say which GOT slot or which relocation it is for
 * (arch-*.c), and the relocation has the name. Slots of ifuncs hold the resolver's address in place
 * of a symbol; the symbol table names that.
 *
 * This is done at the first address in a stub section: most files never need it, and a big one has
 * megabytes of relocations.
 */
#include "symbolize/symbol-plt.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/sort.h"
#include "util/bisect.h"
#include "util/cursor.h"

#define MAX_STUBS	65536u
#define MAX_RELOCATIONS (1u << 20)
#define MAX_STUB_NAME	4096

static const char *const stub_sections[SYMBOL_PLT_SECTIONS] = {".plt", ".plt.sec", ".plt.got"};
static const char *const relocation_sections[2] = {".rela.plt", ".rela.dyn"};

void symbol_plt_init(struct symbol_plt *plt, const struct elf_image *im, uint64_t max_bytes)
{
	const struct elf_section *s;

	*plt = (struct symbol_plt){.stubs = {.max = MAX_STUBS}};
	plt->arch = im->is64 ? arch_find(im->machine) : NULL;
	if (!plt->arch)
		return;
	for (size_t i = 0; i < SYMBOL_PLT_SECTIONS; i++) {
		s = elf_image_find(im, stub_sections[i]);
		if (!s || s->flags & SHF_COMPRESSED ||
		    elf_image_bytes(im, s, max_bytes, &plt->sections[i].code) < 0)
			continue;
		plt->sections[i].vaddr = s->addr;
	}
	for (size_t i = 0; i < ARRAY_SIZE(relocation_sections); i++) {
		s = elf_image_find(im, relocation_sections[i]);
		if (s && s->type == SHT_RELA && !(s->flags & SHF_COMPRESSED))
			(void)elf_image_bytes(im, s, max_bytes, &plt->relocations[i]);
	}
	s = elf_image_find_type(im, SHT_DYNSYM);
	if (s && !(s->flags & SHF_COMPRESSED))
		(void)elf_image_bytes(im, s, max_bytes, &plt->symbols);
}

void symbol_plt_deinit(struct symbol_plt *plt)
{
	for (size_t i = 0; i < SYMBOL_PLT_SECTIONS; i++)
		elf_bytes_release(&plt->sections[i].code);
	for (size_t i = 0; i < ARRAY_SIZE(plt->relocations); i++)
		elf_bytes_release(&plt->relocations[i]);
	elf_bytes_release(&plt->symbols);
	array_deinit(&plt->stubs);
}

/* GOT slots, sorted: key slot address, extra which table, value which relocation. */
struct slots {
	struct sort_pair *pairs;
	size_t n;
};

static Elf64_Rela relocation_at(const struct elf_bytes *b, size_t i)
{
	Elf64_Rela r;

	memcpy(&r, b->data + i * sizeof(r), sizeof(r));
	return r;
}

static int slots_collect(const struct symbol_plt *plt, struct slots *ret)
{
	size_t n_max = 0;

	for (size_t t = 0; t < ARRAY_SIZE(plt->relocations); t++)
		n_max += plt->relocations[t].n / sizeof(Elf64_Rela);
	if (n_max > MAX_RELOCATIONS)
		n_max = MAX_RELOCATIONS;
	ret->pairs = malloc((n_max + 1) * sizeof(*ret->pairs));
	if (!ret->pairs)
		return -ENOMEM;
	for (uint32_t t = 0; t < ARRAY_SIZE(plt->relocations); t++) {
		const struct elf_bytes *b = &plt->relocations[t];

		for (uint32_t i = 0; i < b->n / sizeof(Elf64_Rela) && ret->n < n_max; i++) {
			Elf64_Rela r = relocation_at(b, i);
			uint32_t type = ELF64_R_TYPE(r.r_info);

			if (type == plt->arch->r_jump_slot || type == plt->arch->r_glob_dat ||
			    type == plt->arch->r_irelative)
				ret->pairs[ret->n++] = (struct sort_pair){r.r_offset, i, t};
		}
	}
	return sort_pairs(ret->pairs, ret->n);
}

static bool slots_find(const struct slots *slots, uint64_t address, uint32_t *ret_table,
		       uint32_t *ret_i)
{
	size_t at = bisect(slots->n, i, slots->pairs[i].key < address);

	if (at == slots->n || slots->pairs[at].key != address)
		return false;
	*ret_table = slots->pairs[at].extra;
	*ret_i = slots->pairs[at].value;
	return true;
}

/* The symbol, or the ifunc's resolver, that a relocation refers to. */
static const char *relocation_name(const struct symbol_plt *plt, struct symbol_table *t,
				   const Elf64_Rela *r)
{
	uint64_t i = ELF64_R_SYM(r->r_info), start, size;
	uint32_t row;
	Elf64_Sym s;

	if (ELF64_R_TYPE(r->r_info) == plt->arch->r_irelative)
		return symbol_table_lookup(t, (uint64_t)r->r_addend, &row, &start, &size)
			       ? symbol_table_name(t, row)
			       : NULL;
	if (i == 0 || i >= plt->symbols.n / sizeof(s))
		return NULL;
	memcpy(&s, plt->symbols.data + i * sizeof(s), sizeof(s));
	if (s.st_name == 0 || s.st_name >= t->names[SYMBOL_NAMES_DYNAMIC].n)
		return NULL;
	return t->names[SYMBOL_NAMES_DYNAMIC].bytes + s.st_name;
}

/* The relocation of a stub. */
static bool stub_relocation(const struct symbol_plt *plt, const struct slots *slots,
			    const struct arch_stub *stub, Elf64_Rela *ret)
{
	uint32_t table = 0, i;

	if (stub->kind == ARCH_STUB_OTHER)
		return false;
	if (stub->kind == ARCH_STUB_RELOCATION)
		i = (uint32_t)stub->target;
	else if (!slots_find(slots, stub->target, &table, &i))
		return false;
	if (i >= plt->relocations[table].n / sizeof(Elf64_Rela))
		return false;
	*ret = relocation_at(&plt->relocations[table], i);
	return true;
}

static void stubs_of_section(struct symbol_plt *plt, struct symbol_table *t,
			     const struct slots *slots, const struct elf_bytes *code,
			     uint64_t vaddr)
{
	struct arch_stub stub;

	for (size_t at = 0; at < code->n; at += stub.size) {
		char text[MAX_STUB_NAME];
		const char *name = NULL;
		struct symbol_plt_stub *s;
		Elf64_Rela r;
		int n = 0;

		plt->arch->stub(code->data + at, code->n - at, vaddr + at, &stub);
		if (stub_relocation(plt, slots, &stub, &r))
			name = relocation_name(plt, t, &r);
		if (name)
			n = snprintf(text, sizeof(text), "%.*s@plt", MAX_STUB_NAME / 2, name);
		else if (at == 0) /* the part that all lazy stubs share */
			n = snprintf(text, sizeof(text), ".plt");
		if (n <= 0 || n >= MAX_STUB_NAME)
			continue;
		s = array_push(&plt->stubs);
		if (!s) {
			t->n_refused++;
			return;
		}
		*s = (struct symbol_plt_stub){vaddr + at, (uint32_t)stub.size,
					      symbol_table_keep_name(t, text)};
	}
}

static int stub_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol_plt_stub *)a)->start;
	uint64_t y = ((const struct symbol_plt_stub *)b)->start;

	return (x > y) - (x < y);
}

static void plt_build(struct symbol_plt *plt, struct symbol_table *t)
{
	struct slots slots = {0};

	if (slots_collect(plt, &slots) == 0)
		for (size_t i = 0; i < SYMBOL_PLT_SECTIONS; i++)
			stubs_of_section(plt, t, &slots, &plt->sections[i].code,
					 plt->sections[i].vaddr);
	free(slots.pairs);
	if (plt->stubs.n)
		qsort(plt->stubs.items, plt->stubs.n, sizeof(*plt->stubs.items), stub_compare);
}

bool symbol_plt_lookup(struct symbol_plt *plt, struct symbol_table *t, uint64_t vaddr,
		       const char **ret_name, uint64_t *ret_start, uint64_t *ret_size)
{
	const struct symbol_plt_stub *s;
	bool within = false;
	uint32_t n;

	for (size_t i = 0; i < SYMBOL_PLT_SECTIONS; i++)
		within |= vaddr - plt->sections[i].vaddr < plt->sections[i].code.n;
	if (!within)
		return false;
	if (!plt->built)
		plt_build(plt, t);
	plt->built = true;
	n = bisect(plt->stubs.n, i, plt->stubs.items[i].start <= vaddr);
	s = n ? &plt->stubs.items[n - 1] : NULL;
	if (!s || vaddr - s->start >= s->size || s->name == 0)
		return false;
	*ret_name = symbol_table_kept_name(t, s->name);
	*ret_start = s->start;
	*ret_size = s->size;
	return true;
}
