/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of .gopclntab.
 *
 * Formats of Go 1.18 (magic ..f0) and 1.20 (..f1) on, as in cmd/internal/objabi, runtime/symtab.go
 * and runtime/symtabinl.go of Go's source. The section is a header and five tables, which refer to
 * each other by offset: functions by address, names, files, files of compile units, and
 * programs that give a value (line, file, index of an inlined call) for each pc of a function.
 *
 * Two things are outside of it: the address of the code (in the header until 1.25, and even then
 * one that a loader fills in when the program is position independent), and the trees of inlined
 * calls (go:func.*). Both are named by the runtime's struct moduledata (util/go-module.h). Without
 * it there are no inlined calls, and code begins where .text does if the functions agree
 * with that.
 *
 * Nothing is copied: a lookup is a binary search in the mapped file, and a few programs of tens of
 * bytes. Each is bounded, so the worst file costs some hundred microseconds an address.
 */
#include "symbolize/arch.h"
#include "symbolize/go-table.h"

#include <elf.h>
#include <stdlib.h>

#include "util/cursor.h"
#include "util/go-module.h"

enum {
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	FUNC_FIXED_118 = 40, /* struct _func without its arrays; 1.20 brought the first line */
	FUNC_FIXED_120 = 44,
	PCDATA_INLINE_INDEX = 2,
	FUNCDATA_INLINE_TREE = 3,
	CALL_BYTES_118 = 20, /* struct inlinedCall */
	CALL_BYTES_120 = 16,
	MAX_PROGRAM_STEPS = 16384,
	MAX_RELOCATIONS = 1 << 22,
};

#define MAX_DATA (UINT64_C(64) << 20) /* of .data, to look for the module's data in */

struct go_table {
	struct elf_bytes bytes;
	uint64_t address; /* of the section */
	uint32_t magic;
	uint32_t n_funcs;
	uint64_t names, units, files, programs, funcs; /* offsets */
	uint64_t text;				       /* what functions count from */
	struct elf_bytes trees_bytes;
	uint64_t trees; /* of the address of go:func.* in trees_bytes; their ends: no inlined calls
			 */
};

struct go_table_func {
	uint64_t start, end;
	uint64_t at; /* offset of the struct */
	uint32_t name, file_program, line_program, n_pcdata, unit, start_line;
	uint8_t n_funcdata;
};

/* ---- Reading ---- */

static struct cursor bytes_at(const struct elf_bytes *b, uint64_t offset)
{
	if (offset > b->n)
		offset = b->n;
	return cursor_make(b->data + offset, b->n - (size_t)offset);
}

static uint32_t table_u32(const struct go_table *t, uint64_t offset)
{
	struct cursor c = bytes_at(&t->bytes, offset);

	return cursor_u32(&c);
}

/* The string there; "" when there is none. */
static const char *table_string(const struct go_table *t, uint64_t base, uint64_t offset)
{
	struct cursor c = bytes_at(&t->bytes, base + offset);
	const char *s = cursor_string(&c);

	return s ? s : "";
}

static bool read_varint(struct cursor *c, uint32_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte = cursor_u8(c);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)v;
			return cursor_ok(c);
		}
	}
	return false;
}

/* What the program at that offset of programs says for pc; -1: nothing. */
static int32_t program_run(const struct go_table *t, const struct go_table_func *f,
			   uint32_t program, uint64_t pc)
{
	struct cursor c = bytes_at(&t->bytes, t->programs + program);
	uint64_t at = f->start;
	uint32_t value = UINT32_MAX, change, advance; /* begins with -1 */

	if (program == 0)
		return -1;
	for (unsigned int i = 0; i < MAX_PROGRAM_STEPS; i++) {
		if (!read_varint(&c, &change) || (change == 0 && i > 0) ||
		    !read_varint(&c, &advance))
			return -1;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		at += advance; /* all but x86 count in instructions; see header_read() */
		if (pc < at)
			return (int32_t)value;
	}
	return -1;
}

/* ---- Functions ---- */

/* Row of the last function that begins at or before offset; n_funcs: none. */
static uint32_t func_row(const struct go_table *t, uint64_t offset)
{
	uint32_t low = 0, high = t->n_funcs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (table_u32(t, t->funcs + (uint64_t)mid * 8) <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? t->n_funcs : low - 1;
}

static bool func_find(const struct go_table *t, uint64_t vaddr, struct go_table_func *ret)
{
	uint64_t offset = vaddr - t->text;
	struct go_table_func f = {0};
	struct cursor c;
	uint32_t row, entry, end;

	if (vaddr < t->text || offset > UINT32_MAX)
		return false;
	row = func_row(t, offset);
	if (row == t->n_funcs)
		return false;
	entry = table_u32(t, t->funcs + (uint64_t)row * 8);
	end = table_u32(t,
			t->funcs + (uint64_t)(row + 1) * 8); /* one more stands behind the last */
	f.at = t->funcs + table_u32(t, t->funcs + (uint64_t)row * 8 + 4);
	f.start = t->text + entry;
	f.end = t->text + end;
	c = bytes_at(&t->bytes, f.at);
	if (cursor_u32(&c) != entry || offset >= end)
		return false;
	f.name = cursor_u32(&c);
	(void)cursor_take(&c, 3 * 4); /* size of arguments, deferreturn, pc to sp */
	f.file_program = cursor_u32(&c);
	f.line_program = cursor_u32(&c);
	f.n_pcdata = cursor_u32(&c);
	f.unit = cursor_u32(&c);
	f.start_line = t->magic == MAGIC_120 ? cursor_u32(&c) : 0;
	(void)cursor_take(&c, 3); /* special function, flags, padding */
	f.n_funcdata = cursor_u8(&c);
	if (!cursor_ok(&c))
		return false;
	*ret = f;
	return true;
}

bool go_table_lookup(struct go_table *t, uint64_t vaddr, const char **ret_name, uint64_t *ret_start,
		     uint64_t *ret_size)
{
	struct go_table_func f;
	const char *name;

	if (!func_find(t, vaddr, &f))
		return false;
	name = table_string(t, t->names, f.name);
	if (!*name)
		return false;
	*ret_name = name;
	*ret_start = f.start;
	*ret_size = f.end - f.start;
	return true;
}

/* ---- Lines and inlined calls ---- */

static void position_find(const struct go_table *t, const struct go_table_func *f, uint64_t pc,
			  struct dwarf_frame *ret)
{
	int32_t file = program_run(t, f, f->file_program, pc);
	int32_t line = program_run(t, f, f->line_program, pc);
	uint32_t offset;

	ret->line = line > 0 ? (uint32_t)line : 0;
	if (file < 0)
		return;
	offset = table_u32(t, t->units + 4 * ((uint64_t)f->unit + (uint32_t)file));
	if (offset != UINT32_MAX && offset < t->bytes.n)
		ret->file = table_string(t, t->files, offset);
	if (ret->file && !*ret->file)
		ret->file = NULL;
}

struct inlined_call {
	uint32_t name, parent_pc, start_line;
	uint64_t entry; /* tells it from other functions */
};

static uint64_t func_fixed(const struct go_table *t)
{
	return t->magic == MAGIC_120 ? FUNC_FIXED_120 : FUNC_FIXED_118;
}

/* The index of the innermost call inlined at pc; -1: none. */
static int32_t call_index(const struct go_table *t, const struct go_table_func *f, uint64_t pc)
{
	uint64_t at = f->at + func_fixed(t) + 4 * PCDATA_INLINE_INDEX;

	return f->n_pcdata > PCDATA_INLINE_INDEX ? program_run(t, f, table_u32(t, at), pc) : -1;
}

static bool call_read(const struct go_table *t, const struct go_table_func *f, int32_t index,
		      struct inlined_call *ret)
{
	bool is_118 = t->magic == MAGIC_118;
	uint32_t tree = table_u32(t, f->at + func_fixed(t) + 4 * (uint64_t)f->n_pcdata +
					     4 * FUNCDATA_INLINE_TREE);
	uint64_t at = t->trees + tree +
		      (uint64_t)(uint32_t)index * (is_118 ? CALL_BYTES_118 : CALL_BYTES_120);
	struct cursor c = bytes_at(&t->trees_bytes, at);

	if (!t->trees_bytes.data || f->n_funcdata <= FUNCDATA_INLINE_TREE || tree == UINT32_MAX)
		return false;
	/* parent, function, file and line until 1.19; else the function and padding */
	(void)cursor_take(&c, is_118 ? 12 : 4);
	ret->name = cursor_u32(&c);
	ret->parent_pc = cursor_u32(&c);
	ret->start_line = is_118 ? 0 : cursor_u32(&c);
	ret->entry = t->address + t->names + ret->name;
	return cursor_ok(&c);
}

size_t go_table_chain(struct go_table *t, uint64_t vaddr, struct dwarf_frame *frames, size_t max)
{
	struct inlined_call call;
	struct go_table_func f;
	uint64_t pc = vaddr;
	int32_t index;
	size_t n = 0;

	if (max == 0 || !func_find(t, vaddr, &f))
		return 0;
	for (unsigned int depth = 0; depth < 2 * SYMBOL_MAX_CHAIN; depth++) {
		struct dwarf_frame frame = {0};

		position_find(t, &f, pc, &frame);
		index = call_index(t, &f, pc);
		if (index < 0 || !call_read(t, &f, index, &call)) {
			frame.name = table_string(t, t->names, f.name);
			frame.start_line = f.start_line;
			frame.entry = f.start;
		} else {
			frame.name = table_string(t, t->names, call.name);
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
	const struct go_module_key key = {t->address, t->address + t->names,
					  table_u32(t, t->funcs)};

	for (const char *const *name = go_module_data_sections; *name; name++)
		if (module_in_section(&key, im, elf_image_find(im, *name), ret))
			return true;
	for (const char *const *name = go_module_relocation_sections; *name; name++)
		if (module_in_section(&key, im, elf_image_find(im, *name), ret))
			return true;
	return false;
}

/* The section that holds the trees of inlined calls. */
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

static bool header_read(struct go_table *t, uint64_t *ret_text)
{
	struct cursor c = bytes_at(&t->bytes, 0);
	uint64_t n_funcs;

	t->magic = cursor_u32(&c);
	/* Other machines count their programs in instructions of 2 or 4 bytes: not read here. */
	if ((t->magic != MAGIC_118 && t->magic != MAGIC_120) || cursor_u16(&c) != 0 ||
	    cursor_u8(&c) != 1 || cursor_u8(&c) != 8)
		return false;
	n_funcs = cursor_u64(&c);
	(void)cursor_u64(&c); /* number of files */
	*ret_text = cursor_u64(&c);
	t->names = cursor_u64(&c);
	t->units = cursor_u64(&c);
	t->files = cursor_u64(&c);
	t->programs = cursor_u64(&c);
	t->funcs = cursor_u64(&c);
	if (!cursor_ok(&c) || t->names >= t->bytes.n || t->units >= t->bytes.n ||
	    t->files >= t->bytes.n || t->programs >= t->bytes.n || t->funcs >= t->bytes.n ||
	    n_funcs == 0 || n_funcs > UINT32_MAX || n_funcs >= (t->bytes.n - t->funcs) / 8)
		return false;
	t->n_funcs = (uint32_t)n_funcs;
	return true;
}

static bool table_open(struct go_table *t, const struct elf_image *im, uint64_t max_bytes)
{
	const struct elf_section *code = elf_image_find(im, ".text");
	struct go_module module;
	uint64_t text;

	if (!header_read(t, &text))
		return false;
	if (module_find(t, im, &module)) {
		t->text = module.words[GO_MODULE_TEXT];
		trees_open(t, im,
			   module.words[t->magic == MAGIC_120 ? GO_MODULE_GO_FUNC_120
							      : GO_MODULE_GO_FUNC_118],
			   max_bytes);
		return true;
	}
	t->text = text ? text : code ? code->addr : 0;
	return t->text && code && t->text >= code->addr && t->text - code->addr < code->size;
}

/* The one that the table is, or is in. */
static const struct elf_section *table_section(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find(im, ".gopclntab");

	if (!s) /* position independent, until 1.25 */
		s = elf_image_find(im, ".data.rel.ro.gopclntab");
	if (!s && elf_image_find(im, GO_MODULE_MARK)) /* and linked by a C linker */
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
