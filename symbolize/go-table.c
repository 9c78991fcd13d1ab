/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from .gopclntab (util/go-functions.h).
 *
 * Two things are outside of it: the address of the code (in the header up to 1.25, where a loader
 * fills it in if the program is position independent), and the trees of inlined calls (go:func.*,
 * runtime/symtabinl.go). The runtime's struct moduledata (util/go-module.h) has both addresses.
 * Without it there are no inlined calls, and code begins at .text if that agrees with the
 * functions.
 *
 * The worst file costs some hundred microseconds for each address.
 */
#include "symbolize/arch.h"
#include "symbolize/go-table.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "util/cursor.h"
#include "util/go-functions.h"
#include "util/go-module.h"

enum {
	PCDATA_INLINE_INDEX = 2,
	FUNCDATA_INLINE_TREE = 3,
	CALL_BYTES_118 = 20, /* struct inlinedCall */
	CALL_BYTES_120 = 16,
	MAX_PROGRAM_STEPS = 16384,
	MAX_RELOCATIONS = 1 << 22,
};

#define MAX_DATA (UINT64_C(64) << 20) /* of .data, to search for moduledata */

struct go_table {
	struct elf_bytes bytes;
	uint64_t address; /* of the section */
	struct go_functions functions;
	struct elf_bytes trees_bytes;
	uint64_t trees; /* offset of go:func.* in trees_bytes; its end: no inlined calls
			 */
};

/* ---- Functions ---- */

/* The value of one of f's tables at pc; -1: none. */
static int32_t program_run(const struct go_table *t, const struct go_function *f, uint32_t program,
			   uint64_t pc)
{
	struct go_value v;

	return go_functions_run(&t->functions, f, program, pc, MAX_PROGRAM_STEPS, &v) ? v.value
										      : -1;
}

static const char *name_at(const struct go_table *t, uint32_t name)
{
	return go_functions_string(&t->functions, t->functions.names + name);
}

bool go_table_lookup(struct go_table *t, uint64_t vaddr, const char **ret_name, uint64_t *ret_start,
		     uint64_t *ret_size)
{
	struct go_function f;
	const char *name;

	if (!go_functions_find(&t->functions, vaddr, &f))
		return false;
	name = name_at(t, f.name);
	if (!*name)
		return false;
	*ret_name = name;
	*ret_start = f.start;
	*ret_size = f.end - f.start;
	return true;
}

static const char *name_of_row(const struct go_table *t, uint32_t row)
{
	struct go_function f;

	return go_functions_find(&t->functions,
				 t->functions.text + go_functions_begin(&t->functions, row), &f)
		       ? name_at(t, f.name)
		       : "";
}

static bool begins_with_one(const char *name, const char *const *prefixes)
{
	while (*prefixes && strncmp(name, *prefixes, strlen(*prefixes)) != 0)
		prefixes++;
	return *prefixes != NULL;
}

bool go_table_address(struct go_table *t, const char *name, uint64_t *ret)
{
	const struct go_functions *g = &t->functions;

	for (uint32_t row = 0; row < g->n_funcs; row++) {
		if (strcmp(name_of_row(t, row), name) != 0)
			continue;
		*ret = g->text + go_functions_begin(g, row);
		return true;
	}
	return false;
}

uint32_t go_table_code(struct go_table *t, const char *const *prefixes, struct go_code *ret,
		       uint32_t max)
{
	const struct go_functions *g = &t->functions;
	uint32_t n = 0;

	for (uint32_t row = 0; row < g->n_funcs; row++) {
		uint64_t start = g->text + go_functions_begin(g, row);

		if (!begins_with_one(name_of_row(t, row), prefixes))
			continue;
		if (n == 0 || ret[n - 1].end != start) {
			if (n == max)
				break;
			ret[n++].start = start;
		}
		ret[n - 1].end = g->text + go_functions_begin(g, row + 1);
	}
	return n;
}

/* ---- Lines and inlined calls ---- */

static void position_find(const struct go_table *t, const struct go_function *f, uint64_t pc,
			  struct dwarf_frame *ret)
{
	int32_t file = program_run(t, f, f->file_program, pc);
	int32_t line = program_run(t, f, f->line_program, pc);
	const struct go_functions *g = &t->functions;
	uint32_t offset;

	ret->line = line > 0 ? (uint32_t)line : 0;
	if (file < 0)
		return;
	offset = go_functions_u32(g, g->units + 4 * ((uint64_t)f->unit + (uint32_t)file));
	if (offset != UINT32_MAX && offset < g->n)
		ret->file = go_functions_string(g, g->files + offset);
	if (ret->file && !*ret->file)
		ret->file = NULL;
}

struct inlined_call {
	uint32_t name, parent_pc, start_line;
	uint64_t entry; /* tells functions apart */
};

/* The index of the innermost call inlined at pc; -1: none. */
static int32_t call_index(const struct go_table *t, const struct go_function *f, uint64_t pc)
{
	uint64_t at = f->arrays + 4 * PCDATA_INLINE_INDEX;

	return f->n_pcdata > PCDATA_INLINE_INDEX
		       ? program_run(t, f, go_functions_u32(&t->functions, at), pc)
		       : -1;
}

static bool call_read(const struct go_table *t, const struct go_function *f, int32_t index,
		      struct inlined_call *ret)
{
	bool is_118 = t->functions.magic == GO_MAGIC_118;
	uint32_t tree = go_functions_u32(&t->functions, f->arrays + 4 * (uint64_t)f->n_pcdata +
								4 * FUNCDATA_INLINE_TREE);
	uint64_t at = t->trees + tree +
		      (uint64_t)(uint32_t)index * (is_118 ? CALL_BYTES_118 : CALL_BYTES_120);
	const struct elf_bytes *b = &t->trees_bytes;
	struct cursor c = cursor_make(NULL, 0);

	if (at < b->n)
		c = cursor_make(b->data + at, b->n - at);
	if (!t->trees_bytes.data || f->n_funcdata <= FUNCDATA_INLINE_TREE || tree == UINT32_MAX)
		return false;
	/* parent, function, file and line until 1.19; else the function and padding */
	(void)cursor_take(&c, is_118 ? 12 : 4);
	ret->name = cursor_u32(&c);
	ret->parent_pc = cursor_u32(&c);
	ret->start_line = is_118 ? 0 : cursor_u32(&c);
	ret->entry = t->address + t->functions.names + ret->name;
	return cursor_ok(&c);
}

size_t go_table_chain(struct go_table *t, uint64_t vaddr, struct dwarf_frame *frames, size_t max)
{
	struct inlined_call call;
	struct go_function f;
	uint64_t pc = vaddr;
	int32_t index;
	size_t n = 0;

	if (max == 0 || !go_functions_find(&t->functions, vaddr, &f))
		return 0;
	for (unsigned int depth = 0; depth < 2 * SYMBOL_MAX_CHAIN; depth++) {
		struct dwarf_frame frame = {0};

		position_find(t, &f, pc, &frame);
		index = call_index(t, &f, pc);
		if (index < 0 || !call_read(t, &f, index, &call)) {
			frame.name = name_at(t, f.name);
			frame.start_line = f.start_line;
			frame.entry = f.start;
		} else {
			frame.name = name_at(t, call.name);
			frame.start_line = call.start_line;
			frame.entry = call.entry;
			pc = f.start + call.parent_pc;
		}
		if (n == max) { /* the innermost one goes */
			memmove(frames, frames + 1, (n - 1) * sizeof(*frames));
			n--;
		}
		frames[n++] = frame;
		if (frame.entry == f.start)
			return n;
	}
	return 0; /* a loop */
}

void go_table_trim(struct go_table *t)
{
	elf_bytes_forget(&t->bytes);
	elf_bytes_forget(&t->trees_bytes);
}

/* ---- The module's data ---- */

static uint32_t relative_type(const struct elf_image *im)
{
	const struct arch *arch = arch_find(im->machine);

	return arch ? arch->r_relative : UINT32_MAX;
}

static bool module_in_section(const struct go_module_key *key, const struct elf_image *im,
			      const struct elf_section *s, struct go_module *ret)
{
	bool relocations = s && s->type == SHT_RELA, found;
	struct elf_bytes b = {0};

	if (!s || s->flags & SHF_COMPRESSED ||
	    elf_image_bytes(im, s, relocations ? MAX_RELOCATIONS * sizeof(Elf64_Rela) : MAX_DATA,
			    &b) < 0)
		return false;
	found = relocations ? go_module_find_relocated(key, b.data, b.n, relative_type(im), ret)
			    : go_module_find(key, b.data, b.n, s->addr, ret);
	elf_bytes_release(&b);
	return found;
}

static bool module_find(const struct go_table *t, const struct elf_image *im, struct go_module *ret)
{
	const struct go_module_key key = {t->address, t->address + t->functions.names,
					  go_functions_begin(&t->functions, 0)};

	for (const char *const *name = go_module_data_sections; *name; name++)
		if (module_in_section(&key, im, elf_image_find(im, *name), ret))
			return true;
	for (const char *const *name = go_module_relocation_sections; *name; name++)
		if (module_in_section(&key, im, elf_image_find(im, *name), ret))
			return true;
	return false;
}

/* Opens the section that holds the trees of inlined calls. */
static void trees_open(struct go_table *t, const struct elf_image *im, uint64_t address,
		       uint64_t max_bytes)
{
	for (uint32_t i = 1; i < im->n_sections; i++) {
		const struct elf_section *s = &im->sections[i];

		if (!(s->flags & SHF_ALLOC) || s->flags & SHF_COMPRESSED || address < s->addr ||
		    address - s->addr >= s->size)
			continue;
		if (elf_image_bytes(im, s, max_bytes, &t->trees_bytes) == 0)
			t->trees = address - s->addr;
		return;
	}
}

/* ---- Opening ---- */

static bool table_open(struct go_table *t, const struct elf_image *im, uint64_t max_bytes)
{
	const struct elf_section *code = elf_image_find(im, ".text");
	struct go_functions *g = &t->functions;
	struct go_module module;

	/* Bytes of an instruction, of which every one of the processor's is a multiple. */
	if (!go_functions_read(g, t->bytes.data, t->bytes.n) ||
	    (g->quantum != 1 && g->quantum != 2 && g->quantum != 4))
		return false;
	if (module_find(t, im, &module)) {
		g->text = module.words[GO_MODULE_TEXT];
		trees_open(t, im,
			   module.words[g->magic == GO_MAGIC_120 ? GO_MODULE_GO_FUNC_120
								 : GO_MODULE_GO_FUNC_118],
			   max_bytes);
		return true;
	}
	if (!g->text)
		g->text = code ? code->addr : 0;
	return g->text && code && g->text >= code->addr && g->text - code->addr < code->size;
}

/* The section that is the table, or contains it. */
static const struct elf_section *table_section(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find(im, ".gopclntab");

	if (!s) /* position independent, up to 1.25 */
		s = elf_image_find(im, ".data.rel.ro.gopclntab");
	if (!s && elf_image_find(im, GO_MODULE_MARK)) /* the same, from a C linker */
		s = elf_image_find(im, ".data.rel.ro");
	return s;
}

int go_table_new(struct go_table **ret, const struct elf_image *im, uint64_t max_bytes)
{
	const struct elf_section *s = table_section(im);
	_cleanup_(go_table_freep) struct go_table *t = NULL;
	size_t at;
	int r;

	*ret = NULL;
	if (!s || !im->is64 || s->flags & SHF_COMPRESSED)
		return 1;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	r = elf_image_bytes(im, s, max_bytes, &t->bytes);
	if (r < 0)
		return r == -EFBIG ? r : 1;
	at = go_module_find_table(t->bytes.data, t->bytes.n, s->addr);
	t->address = s->addr + at;
	t->bytes.data += at;
	t->bytes.n -= at;
	if (!table_open(t, im, max_bytes))
		return 1;
	*ret = TAKE_PTR(t);
	return 0;
}

struct go_table *go_table_free(struct go_table *t)
{
	if (t) {
		elf_bytes_release(&t->bytes);
		elf_bytes_release(&t->trees_bytes);
		free(t);
	}
	return NULL;
}
