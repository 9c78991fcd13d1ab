/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one ELF file: which tables are read, and which symbols count as functions.
 *
 * Sources, in this order:
 *	1. .symtab of the file, which then holds everything;
 *	2. else .symtab of the separate debug file, if it proves to belong to this file;
 *	3. without either, .symtab of the ELF file inside .gnu_debugdata (MiniDebugInfo: Fedora
 *	   and RHEL), which holds what .dynsym does not;
 *	4. .dynsym of the file, after 3, or when it is larger than what 1 or 2 gave (nothing, or a
 *	   .symtab that was stripped to a few names).
 * Then stub sections (symbol-plt.c), and Go's own table (go-table.c), which stripping keeps.
 *
 * Functions are FUNC and GNU_IFUNC symbols, and untyped ones (assembler), that are defined in a
 * loaded executable section which really holds their address (so _etext and __bss_start name
 * nothing), within an executable segment of the file itself. Names such as f.cold or f.part.0 stay:
 * they are other code. Mapping symbols ($x, $d) are dropped.
 *
 * All sections are mapped when the file is opened and read at the first lookup; the descriptor is
 * not kept. Names are copied from the mapped string table when they are read; it becomes resident
 * in 64 KiB steps, and symbol_file_trim() gives it back.
 *
 * Lines come from DWARF (dwarf.c) of the file itself, else of its debug file; without any, from
 * Go's table. The symbol tables name the last function of a chain if they can: they know aliases
 * and parts such as f.cold by the names that all other tools use.
 */
#include "symbolize/symbolize.h"

#include <elf.h>
#include <string.h>

#include "symbolize/debug-file.h"
#include "symbolize/dwarf.h"
#include "symbolize/elf-image.h"
#include "symbolize/go-table.h"
#include "symbolize/symbol-plt.h"
#include "symbolize/symbol-table.h"
#include "util/mapped-file.h"

#define MAX_SECTIONS_TRIED 128

struct table_bytes {
	struct elf_bytes symbols, names;
};

struct symbol_file {
	struct symbol_limits limits;
	symbol_open_debug_fn open_debug;
	void *ctx;
	symbol_open_split_fn open_split;
	void *split_ctx;
	/* their section headers; no bytes are read from them later */
	struct elf_image image, debug;
	struct table_bytes fixed, dynamic, mini;
	struct elf_bytes mini_image;		/* compressed; freed when the tables are built */
	struct debug_link debug_link, alt_link; /* alt_link: from the file that has the lines */
	struct symbol_table table;
	struct symbol_plt plt;
	struct dwarf *dwarf;	       /* NULL: no debugging information, or not opened yet */
	struct go_table *go;	       /* NULL: not a Go program */
	uint64_t code_start, code_end; /* all executable segments */
	bool built;
	bool is_short;	    /* it was cut while it was read: what it says is wrong */
	uint64_t n_refused; /* tables */
};

static void table_bytes_release(struct table_bytes *b)
{
	elf_bytes_release(&b->symbols);
	elf_bytes_release(&b->names);
}

/* Maps the symbol table of that type and its strings, or neither. */
static void table_bytes_open(struct symbol_file *f, const struct elf_image *im, uint32_t type,
			     struct table_bytes *ret)
{
	const struct elf_section *s = elf_image_find_type(im, type), *names;
	struct elf_section dynamic[2];
	uint64_t max = f->limits.max_file_bytes;
	int r;

	if (s && s->link < im->n_sections) {
		names = &im->sections[s->link];
	} else if (im->n_sections == 0 && type == SHT_DYNSYM &&
		   elf_dynamic_symbols(im, &dynamic[0], &dynamic[1])) {
		s = &dynamic[0];
		names = &dynamic[1];
	} else {
		return;
	}
	r = elf_image_bytes(im, s, max, &ret->symbols);
	if (r == 0)
		r = elf_image_bytes(im, names, ret->symbols.n < max ? max - ret->symbols.n : 0,
				    &ret->names);
	if (r < 0) {
		table_bytes_release(ret);
		f->n_refused += r == -EFBIG;
	}
}

/*
 * Bytes that may still be inflated. All parts of a file share the budget: a kilobyte can inflate to
 * a megabyte, and names stay as long as their file is used.
 */
static uint64_t inflate_room(const struct symbol_file *f)
{
	const struct elf_bytes *held[] = {&f->fixed.symbols, &f->fixed.names,  &f->dynamic.symbols,
					  &f->dynamic.names, &f->mini.symbols, &f->mini.names,
					  &f->mini_image};
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		n += held[i]->heap ? held[i]->n : 0;
	return n < f->limits.max_inflate_bytes ? f->limits.max_inflate_bytes - n : 0;
}

static int table_bytes_inflate(struct symbol_file *f, const struct elf_image *im,
			       struct table_bytes *b)
{
	struct elf_bytes *both[] = {&b->symbols, &b->names};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		int r = both[i]->compressed ? elf_bytes_inflate(both[i], im->is64, inflate_room(f))
					    : 0;

		if (r < 0) {
			table_bytes_release(b);
			f->n_refused++;
			return r;
		}
	}
	return 0;
}

/* Copies the strings of an image in memory, because the image will be freed. */
static int table_bytes_keep_names(struct table_bytes *b)
{
	struct elf_bytes own = {.n = b->names.n};

	if (b->names.heap)
		return 0;
	own.heap = malloc(own.n);
	if (!own.heap)
		return -ENOMEM;
	memcpy(own.heap, b->names.data, own.n);
	own.data = own.heap;
	elf_bytes_release(&b->names);
	b->names = own;
	return 0;
}

static void lines_open(struct symbol_file *f, const struct elf_image *im)
{
	if (!f->limits.max_line_bytes || f->dwarf)
		return;
	if (dwarf_new(&f->dwarf, im, &f->limits, f->code_start, f->code_end) < 0)
		f->n_refused++;
	if (f->dwarf) {
		dwarf_set_open_split(f->dwarf, f->open_split, f->split_ctx);
		debug_link_read_alt(&f->alt_link, im);
	}
}

static int symbol_file_new(struct symbol_file **ret, struct symbol_file *f)
{
	uint64_t max_symbols = f->limits.max_file_bytes / sizeof(Elf32_Sym);
	const struct elf_section *s;

	symbol_table_init(&f->table,
			  max_symbols < UINT32_MAX / 2 ? (uint32_t)max_symbols : UINT32_MAX / 2);
	for (uint32_t i = 0; i < f->image.n_segments; i++) {
		const struct elf_segment *g = &f->image.segments[i];

		if (g->type != PT_LOAD || !(g->flags & PF_X))
			continue;
		symbol_table_add_segment(&f->table, g->vaddr, g->memsz);
		if (f->code_start == f->code_end || g->vaddr < f->code_start)
			f->code_start = g->vaddr;
		if (g->vaddr + g->memsz > f->code_end)
			f->code_end = g->vaddr + g->memsz;
	}
	table_bytes_open(f, &f->image, SHT_SYMTAB, &f->fixed);
	table_bytes_open(f, &f->image, SHT_DYNSYM, &f->dynamic);
	symbol_plt_init(&f->plt, &f->image, f->limits.max_file_bytes);
	s = f->fixed.symbols.data ? NULL : elf_image_find(&f->image, ".gnu_debugdata");
	if (s && !(s->flags & SHF_COMPRESSED))
		(void)elf_image_bytes(&f->image, s, f->limits.max_inflate_bytes, &f->mini_image);
	debug_link_read(&f->debug_link, &f->image);
	lines_open(f, &f->image);
	if (go_table_new(&f->go, &f->image, f->limits.max_file_bytes) < 0)
		f->n_refused++;
	f->image.fd = -EBADF;
	*ret = f;
	return 0;
}

/* It gives no names any more, if a file has been cut short since. */
static bool check_short(struct symbol_file *f, uint64_t n_short)
{
	if (mapped_file_n_short() == n_short)
		return f->is_short;
	f->is_short = true;
	f->n_refused++;
	return true;
}

int symbol_file_new_fd(struct symbol_file **ret, int fd, const struct symbol_limits *limits,
		       symbol_open_debug_fn open_debug, void *ctx)
{
	struct symbol_file *f = calloc(1, sizeof(*f));
	uint64_t n_short = mapped_file_n_short();
	int r;

	if (!f)
		return -ENOMEM;
	f->limits = *limits;
	f->open_debug = open_debug;
	f->ctx = ctx;
	f->debug.fd = -EBADF;
	r = elf_image_open_fd(&f->image, fd);
	if (r < 0) {
		free(f);
		return r;
	}
	r = symbol_file_new(ret, f);
	(void)check_short(f, n_short);
	return r;
}

int symbol_file_new_memory(struct symbol_file **ret, const void *image, size_t n,
			   const struct symbol_limits *limits)
{
	struct symbol_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->limits = *limits;
	f->debug.fd = -EBADF;
	r = elf_image_open_memory(&f->image, image, n);
	if (r < 0) {
		free(f);
		return r;
	}
	return symbol_file_new(ret, f);
}

void symbol_file_set_open_split(struct symbol_file *f, symbol_open_split_fn open_split, void *ctx)
{
	f->open_split = open_split;
	f->split_ctx = ctx;
	if (f->dwarf)
		dwarf_set_open_split(f->dwarf, open_split, ctx);
}

struct symbol_file *symbol_file_free(struct symbol_file *f)
{
	if (!f)
		return NULL;
	dwarf_free(f->dwarf);
	go_table_free(f->go);
	symbol_plt_deinit(&f->plt);
	symbol_table_deinit(&f->table);
	table_bytes_release(&f->fixed);
	table_bytes_release(&f->dynamic);
	table_bytes_release(&f->mini);
	elf_bytes_release(&f->mini_image);
	elf_image_close(&f->image);
	elf_image_close(&f->debug);
	free(f);
	return NULL;
}

/* ---- Other files ---- */

static void debug_open(struct symbol_file *f)
{
	int r = debug_file_open(&f->debug_link, &f->image, f->open_debug, f->ctx, &f->debug);

	f->n_refused += r < 0;
	if (r != 0)
		return;
	if (!f->fixed.symbols.data)
		table_bytes_open(f, &f->debug, SHT_SYMTAB, &f->fixed);
	lines_open(f, &f->debug);
	(void)close_fd(f->debug.fd);
	f->debug.fd = -EBADF;
}

static void alt_open(struct symbol_file *f)
{
	struct elf_image im = ELF_IMAGE_INIT;
	struct dwarf *alt = NULL;
	int r = debug_file_open_alt(&f->alt_link, f->open_debug, f->ctx, &im);

	if (r == 0) {
		r = dwarf_new(&alt, &im, &f->limits, 0, 0);
		(void)close_fd(im.fd);
		elf_image_close(&im);
	}
	f->n_refused += r < 0;
	if (alt)
		dwarf_set_alt(f->dwarf, alt);
}

/* ---- Reading symbols ---- */

static bool section_holds(const struct elf_section *c, uint64_t address)
{
	uint64_t code = SHF_ALLOC | SHF_EXECINSTR;

	return (c->flags & code) == code && address - c->addr < c->size;
}

/*
 * False: not code. *ret_limit: the end of its section, 0: unknown. Tools that remove sections do
 * not update the section numbers in .dynsym, so the address alone is enough for a typed symbol; an
 * untyped one must be in the section that it names.
 */
static bool symbol_placed(const struct elf_image *im, const Elf64_Sym *s, uint64_t *ret_limit)
{
	const struct elf_section *c = NULL;
	bool typed = ELF64_ST_TYPE(s->st_info) != STT_NOTYPE;

	*ret_limit = 0;
	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON)
		return false;
	if (im->n_sections == 0) /* removed; the table still requires an executable segment */
		return typed;
	if (s->st_shndx < im->n_sections && section_holds(&im->sections[s->st_shndx], s->st_value))
		c = &im->sections[s->st_shndx];
	for (uint32_t i = 1; typed && !c && i < im->n_sections && i < MAX_SECTIONS_TRIED; i++)
		if (section_holds(&im->sections[i], s->st_value))
			c = &im->sections[i];
	if (!c)
		return false;
	*ret_limit = c->addr + c->size;
	return true;
}

static uint32_t symbol_rank(const Elf64_Sym *s)
{
	unsigned int bind = ELF64_ST_BIND(s->st_info);
	uint32_t rank = ELF64_ST_TYPE(s->st_info) == STT_NOTYPE ? 0 : SYMBOL_FUNCTION;

	if (bind != STB_LOCAL)
		rank |= SYMBOL_EXTERNAL;
	if (bind != STB_LOCAL && bind != STB_WEAK)
		rank |= SYMBOL_GLOBAL;
	return rank;
}

/* $x, $d, $a, $t with an optional .suffix say what kind of bytes follow; they are not functions. */
static bool symbol_is_mapping(const struct elf_image *im, const struct table_bytes *b,
			      const Elf64_Sym *s)
{
	if (im->machine != EM_ARM && im->machine != EM_AARCH64 && im->machine != EM_RISCV)
		return false;
	return ELF64_ST_TYPE(s->st_info) == STT_NOTYPE && s->st_name < b->names.n &&
	       b->names.data[s->st_name] == '$';
}

static int symbols_add(struct symbol_file *f, const struct elf_image *im,
		       const struct table_bytes *b, enum symbol_names which)
{
	size_t size = im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

	symbol_table_set_names(&f->table, which, b->names.data, b->names.n);
	elf_bytes_populate(&b->symbols);
	for (size_t at = size; b->symbols.n - at >= size && at < b->symbols.n; at += size) {
		Elf64_Sym s = elf_symbol(b->symbols.data + at, im->is64);
		unsigned int type = ELF64_ST_TYPE(s.st_info);
		uint64_t limit;
		int r;

		if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
			continue;
		if (im->machine == EM_ARM && type == STT_FUNC)
			s.st_value &= ~UINT64_C(1); /* Thumb */
		if (!symbol_placed(im, &s, &limit) || symbol_is_mapping(im, b, &s))
			continue;
		r = symbol_table_add(&f->table, s.st_value, s.st_size, limit, which, s.st_name,
				     symbol_rank(&s));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds the symbols of .gnu_debugdata. Only the strings of the file inside are kept. */
static int mini_build(struct symbol_file *f)
{
	struct elf_image im = ELF_IMAGE_INIT;
	int r = elf_bytes_unxz(&f->mini_image, inflate_room(f));

	if (r == 0)
		r = elf_image_open_memory(&im, f->mini_image.data, f->mini_image.n);
	if (r == 0 && (im.machine != f->image.machine || im.is64 != f->image.is64))
		r = -ENOEXEC;
	if (r == 0)
		table_bytes_open(f, &im, SHT_SYMTAB, &f->mini);
	if (r == 0 && f->mini.symbols.data && table_bytes_inflate(f, &im, &f->mini) == 0 &&
	    table_bytes_keep_names(&f->mini) == 0)
		r = symbols_add(f, &im, &f->mini, SYMBOL_NAMES_MINI);
	f->n_refused += r < 0;
	elf_bytes_release(&f->mini.symbols);
	elf_image_close(&im);
	elf_bytes_release(&f->mini_image);
	return r == -ENOMEM ? r : 0;
}

static int tables_build(struct symbol_file *f)
{
	const struct elf_image *im = &f->image;
	bool own = f->fixed.symbols.data;
	int r = 0;

	if (f->open_debug && (!own || (f->limits.max_line_bytes && !f->dwarf)))
		debug_open(f);
	if (f->open_debug && f->dwarf)
		alt_open(f);
	/* In a file that defines no versions no name ends with one. */
	f->table.versions = f->image.n_sections == 0 || elf_image_find(&f->image, ".gnu.version_d");
	if (!own && f->fixed.symbols.data)
		im = &f->debug;
	if (f->fixed.symbols.data && table_bytes_inflate(f, im, &f->fixed) == 0)
		r = symbols_add(f, im, &f->fixed, SYMBOL_NAMES_STATIC);
	if (r == 0 && !f->fixed.symbols.data && f->mini_image.data)
		r = mini_build(f);
	if (r == 0 && f->dynamic.symbols.data &&
	    table_bytes_inflate(f, &f->image, &f->dynamic) == 0) {
		size_t size = f->image.is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

		/* Names for stubs come from here in any case. */
		symbol_table_set_names(&f->table, SYMBOL_NAMES_DYNAMIC, f->dynamic.names.data,
				       f->dynamic.names.n);
		if (f->mini.names.data || f->dynamic.symbols.n / size > f->table.candidates.n)
			r = symbols_add(f, &f->image, &f->dynamic, SYMBOL_NAMES_DYNAMIC);
	}
	if (r == 0)
		r = symbol_table_finish(&f->table);
	return r;
}

static void symbol_file_build(struct symbol_file *f)
{
	f->built = true;
	if (tables_build(f) < 0) {
		/* No memory: with half a table names would be wrong. */
		symbol_plt_deinit(&f->plt);
		symbol_table_deinit(&f->table);
		f->n_refused++;
	}
	elf_bytes_release(&f->fixed.symbols);
	elf_bytes_release(&f->dynamic.symbols);
	elf_bytes_release(&f->mini_image);
	elf_image_close(&f->image);
	elf_image_close(&f->debug);
}

static int find(struct symbol_file *f, uint64_t vaddr, struct symbol *ret)
{
	struct symbol s = {0};

	if (!f->built)
		symbol_file_build(f);
	if (symbol_table_lookup(&f->table, vaddr, &s.row, &s.start, &s.size))
		s.named_by = f;
	else if (!symbol_plt_lookup(&f->plt, &f->table, vaddr, &s.name, &s.start, &s.size) &&
		 !(f->go && go_table_lookup(f->go, vaddr, &s.name, &s.start, &s.size)))
		return 1;
	*ret = s;
	return 0;
}

int symbol_file_find(struct symbol_file *f, uint64_t vaddr, struct symbol *ret)
{
	uint64_t n_short = mapped_file_n_short();
	struct symbol s;
	int r = f->is_short ? 1 : find(f, vaddr, &s);

	if (check_short(f, n_short) || r != 0)
		return 1;
	*ret = s;
	return 0;
}

const char *symbol_name(const struct symbol *s)
{
	struct symbol_file *f = s->named_by;
	uint64_t n_short = mapped_file_n_short();
	const char *name;

	if (!f || s->name)
		return s->name;
	name = f->is_short ? NULL : symbol_table_name(&f->table, s->row);
	return check_short(f, n_short) ? NULL : name;
}

static int find_lines(struct symbol_file *f, uint64_t vaddr, struct symbol *chain, size_t max,
		      size_t *ret_n)
{
	struct dwarf_frame frames[SYMBOL_MAX_CHAIN];
	const char *language = NULL;
	struct symbol s = {0};
	bool named = find(f, vaddr, &s) == 0 && (s.name = symbol_name(&s));
	size_t n = 0;

	max = max < SYMBOL_MAX_CHAIN ? max : SYMBOL_MAX_CHAIN;
	if (!f->dwarf || dwarf_lookup(f->dwarf, vaddr, frames, max, &n, &language) != 0)
		n = 0;
	if (n == 0 && f->go && f->limits.max_line_bytes) {
		n = go_table_chain(f->go, vaddr, frames, max);
		language = n ? "go" : NULL;
	}
	if (max == 0 || (!named && (n == 0 || !frames[n - 1].name)))
		return 1;
	for (size_t i = 0; i < n; i++) {
		const struct dwarf_frame *frame = &frames[i];

		chain[i] = (struct symbol){.name = frame->name ? frame->name : "[inlined function]",
					   .start = frame->entry,
					   .file = frame->file,
					   .line = frame->line,
					   .start_line = frame->start_line,
					   .column = frame->column,
					   .language = language,
					   .inlined = true};
	}
	if (n == 0)
		chain[n++] = s;
	chain[n - 1].inlined = false;
	if (named) {
		chain[n - 1].name = s.name;
		chain[n - 1].start = s.start;
		chain[n - 1].size = s.size;
	}
	*ret_n = n;
	return 0;
}

int symbol_file_lines(struct symbol_file *f, uint64_t vaddr, struct symbol *chain, size_t max,
		      size_t *ret_n)
{
	uint64_t n_short = mapped_file_n_short();
	int r = f->is_short ? 1 : find_lines(f, vaddr, chain, max, ret_n);

	return check_short(f, n_short) ? 1 : r;
}

uint64_t symbol_file_code_start(const struct symbol_file *f)
{
	return f->code_start;
}

void symbol_file_trim(struct symbol_file *f)
{
	elf_bytes_forget(&f->fixed.names);
	elf_bytes_forget(&f->dynamic.names);
	if (f->go)
		go_table_trim(f->go);
	if (f->dwarf)
		dwarf_trim(f->dwarf);
}

void symbol_file_forget_lines(struct symbol_file *f)
{
	if (f->dwarf)
		dwarf_forget(f->dwarf);
}

size_t symbol_file_line_bytes(const struct symbol_file *f)
{
	return f->dwarf ? dwarf_bytes(f->dwarf) : 0;
}

size_t symbol_file_bytes(const struct symbol_file *f)
{
	return sizeof(*f) + symbol_table_bytes(&f->table) + array_bytes(&f->plt.stubs) +
	       (f->fixed.names.heap ? f->fixed.names.n : 0) +
	       (f->dynamic.names.heap ? f->dynamic.names.n : 0) + f->mini.names.n +
	       symbol_file_line_bytes(f) +
	       (f->built ? 0
			 : f->image.n_sections * sizeof(struct elf_section) +
				   f->image.n_segments * sizeof(struct elf_segment));
}

uint64_t symbol_file_refused(const struct symbol_file *f)
{
	return f->n_refused + f->table.n_refused + (f->dwarf ? dwarf_refused(f->dwarf) : 0);
}
