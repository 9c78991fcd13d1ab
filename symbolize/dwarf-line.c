/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line table of one unit: its line number program runs once and leaves one sorted array of
 * rows.
 *
 * If several rows have one address, the last one counts, as in debuggers. Sequences, each a run of
 * ascending addresses, come in any order and are sorted. We leave out a sequence that the linker
 * discarded (it begins at 0 or outside of the code), that descends or that overlaps another.
 */
#include <dwarf.h>
#include <stdio.h>

#include "symbolize/dwarf-internal.h"
#include "symbolize/sort.h"
#include "util/bisect.h"

#define MAX_ROWS    (1u << 22) /* a unit of 64 MiB of machine code */
#define MAX_PROGRAM (UINT64_C(32) << 20)
#define MAX_FILES   65535
#define MAX_FORMATS 64
#define MAX_PATH    4096

/* ---- The header ---- */

struct line_program {
	struct dwarf *d;
	struct dwarf_unit unit; /* address and offset size of this table, to read forms */
	struct cursor c;
	uint8_t min_inst, line_range, opcode_base, default_is_stmt;
	int8_t line_base;
	uint8_t max_ops;
	uint8_t lengths[256];
};

/* DWARF 2 to 4: a list of strings. */
static int tables_read_old(struct line_program *p, struct cursor *h, struct dwarf_lines *l)
{
	const char *text;

	(void)array_push(&l->dirs); /* 0: the compilation directory */
	while ((text = cursor_string(h)) && *text) {
		struct dwarf_line_place *dir = array_push(&l->dirs);

		if (!dir)
			return -EFBIG;
		*dir = (struct dwarf_line_place){(uint64_t)((const uint8_t *)text - h->start),
						 DWARF_LINE};
	}
	(void)array_push(&l->files); /* 0: the unit's main file */
	while ((text = cursor_string(h)) && *text) {
		struct dwarf_line_file *f = array_push(&l->files);
		uint64_t dir = dwarf_uleb(h);

		(void)dwarf_uleb(h); /* time */
		(void)dwarf_uleb(h); /* size */
		if (!f)
			return -EFBIG;
		f->name = (struct dwarf_line_place){(uint64_t)((const uint8_t *)text - h->start),
						    DWARF_LINE};
		f->dir = dir < l->dirs.n ? (uint32_t)dir : 0;
	}
	return cursor_ok(h) ? 0 : -ENOEXEC;
}

/* Where the text of a value is; offset UINT64_MAX: not a text. */
static struct dwarf_line_place value_place(struct line_program *p, const struct cursor *h,
					   const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_string:
		return (struct dwarf_line_place){(uint64_t)((const uint8_t *)v->text - h->start),
						 DWARF_LINE};
	case DW_FORM_line_strp:
		return (struct dwarf_line_place){v->u, DWARF_LINE_STR};
	case DW_FORM_strp:
		return (struct dwarf_line_place){v->u, DWARF_STR};
	default:
		return (struct dwarf_line_place){UINT64_MAX, DWARF_STR};
	}
}

/* DWARF 5: a description of the entries, then the entries; first directories, then files. */
static int table_read(struct line_program *p, struct cursor *h, struct dwarf_lines *l, bool files)
{
	struct dwarf_spec formats[MAX_FORMATS];
	uint8_t n_formats = cursor_u8(h);
	uint64_t n;

	if (n_formats > MAX_FORMATS)
		return -EFBIG;
	for (uint8_t i = 0; i < n_formats; i++) {
		uint64_t content = dwarf_uleb(h), form = dwarf_uleb(h);

		if (content > UINT16_MAX || form > UINT16_MAX)
			return -ENOEXEC;
		formats[i] = (struct dwarf_spec){(uint16_t)content, (uint16_t)form, 0};
	}
	n = dwarf_uleb(h);
	if (n > MAX_FILES)
		return -EFBIG;
	for (uint64_t i = 0; i < n; i++) {
		struct dwarf_line_file f = {.name = {UINT64_MAX, DWARF_STR}};
		struct dwarf_line_place *dir;
		struct dwarf_line_file *item;

		for (uint8_t j = 0; j < n_formats; j++) {
			struct dwarf_value v = {0};

			if (!dwarf_value_read(h, &p->unit, &formats[j], &v))
				return -ENOEXEC;
			if (formats[j].name == DW_LNCT_path)
				f.name = value_place(p, h, &v);
			else if (formats[j].name == DW_LNCT_directory_index && v.u < l->dirs.n)
				f.dir = (uint32_t)v.u;
		}
		if (files) {
			item = array_push(&l->files);
			if (!item)
				return -ENOMEM;
			*item = f;
		} else {
			dir = array_push(&l->dirs);
			if (!dir)
				return -ENOMEM;
			*dir = f.name;
		}
	}
	return cursor_ok(h) ? 0 : -ENOEXEC;
}

static int header_read(struct line_program *p, struct dwarf_unit *u, struct dwarf_lines *l)
{
	struct cursor h = dwarf_section_at(p->d, DWARF_LINE, u->line_offset);
	uint64_t n;
	int r;

	p->unit = *u;
	n = dwarf_length(&h, &p->unit.offset_size);
	if (!cursor_ok(&h))
		return -ENOEXEC;
	h.end = h.cur + n;
	p->c = h;
	l->version = p->unit.version = (uint8_t)cursor_u16(&h);
	if (l->version < 2 || l->version > 5)
		return -ENOEXEC;
	if (l->version >= 5) {
		p->unit.address_size = cursor_u8(&h);
		(void)cursor_u8(&h); /* segment selectors */
	}
	n = dwarf_uint(&h, p->unit.offset_size);
	if (n > cursor_left(&h))
		return -ENOEXEC;
	p->c.cur = h.cur + n; /* the program */
	if (cursor_left(&p->c) > MAX_PROGRAM)
		return -EFBIG;
	p->min_inst = cursor_u8(&h);
	p->max_ops = l->version >= 4 ? cursor_u8(&h) : 1;
	p->default_is_stmt = cursor_u8(&h);
	p->line_base = (int8_t)cursor_u8(&h);
	p->line_range = cursor_u8(&h);
	p->opcode_base = cursor_u8(&h);
	if (p->line_range == 0 || p->opcode_base == 0)
		return -ENOEXEC;
	for (uint8_t i = 1; i < p->opcode_base; i++)
		p->lengths[i] = cursor_u8(&h);
	if (l->version < 5)
		return tables_read_old(p, &h, l);
	r = table_read(p, &h, l, false);
	return r == 0 ? table_read(p, &h, l, true) : r;
}

/* ---- The program ---- */

struct sequence {
	uint64_t start, end;
	uint32_t first, n;
};

struct raw_row {
	uint64_t address;
	uint32_t line;
	uint16_t file, column;
};

struct run {
	ARRAY(struct raw_row) rows;
	ARRAY(struct sequence) sequences;
	uint32_t first; /* first row of the current sequence */
	bool descends;
	/* Registers */
	uint64_t address, file, column;
	uint32_t line;
};

static void run_reset(struct run *run)
{
	run->address = run->column = 0;
	run->file = run->line = 1;
	run->first = run->rows.n;
	run->descends = false;
}

static int run_emit(struct run *run)
{
	struct raw_row *last = run->rows.n > run->first ? &run->rows.items[run->rows.n - 1] : NULL;

	if (last && run->address < last->address)
		run->descends = true;
	if (!last || last->address != run->address) {
		last = array_push(&run->rows);
		if (!last)
			return run->rows.n == MAX_ROWS ? -EFBIG : -ENOMEM;
	}
	*last = (struct raw_row){run->address, run->line,
				 (uint16_t)(run->file < MAX_FILES ? run->file : MAX_FILES - 1),
				 (uint16_t)(run->column <= UINT16_MAX ? run->column : 0)};
	return 0;
}

static int run_end_sequence(struct line_program *p, struct run *run)
{
	uint64_t start = run->rows.n > run->first ? run->rows.items[run->first].address : 0;
	struct sequence *s;

	if (run->rows.n > run->first && run->address < run->rows.items[run->rows.n - 1].address)
		run->descends = true;
	if (run->descends || start == 0 || start >= run->address || start < p->d->code_start ||
	    run->address > p->d->code_end) {
		run->rows.n = run->first;
	} else {
		s = array_push(&run->sequences);
		if (!s)
			return -ENOMEM;
		*s = (struct sequence){start, run->address, run->first, run->rows.n - run->first};
	}
	run_reset(run);
	return 0;
}

static int run_extended(struct line_program *p, struct run *run)
{
	uint64_t n = dwarf_uleb(&p->c);
	struct cursor in;
	int r = 0;

	if (n == 0 || n > cursor_left(&p->c))
		return -ENOEXEC;
	in = (struct cursor){p->c.cur, p->c.cur, p->c.cur + n, false};
	(void)cursor_take(&p->c, (size_t)n);
	switch (cursor_u8(&in)) {
	case DW_LNE_end_sequence:
		r = run_end_sequence(p, run);
		break;
	case DW_LNE_set_address:
		run->address = dwarf_uint(&in, (unsigned int)n - 1);
		break;
	default:
		break;
	}
	return cursor_ok(&in) ? r : -ENOEXEC;
}

static int run_standard(struct line_program *p, struct run *run, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return run_emit(run);
	case DW_LNS_advance_pc:
		run->address += dwarf_uleb(&p->c) * p->min_inst;
		break;
	case DW_LNS_advance_line:
		run->line += (uint32_t)dwarf_sleb(&p->c);
		break;
	case DW_LNS_set_file:
		run->file = dwarf_uleb(&p->c);
		break;
	case DW_LNS_set_column:
		run->column = dwarf_uleb(&p->c);
		break;
	case DW_LNS_const_add_pc:
		run->address += (uint64_t)((255 - p->opcode_base) / p->line_range) * p->min_inst;
		break;
	case DW_LNS_fixed_advance_pc:
		run->address += cursor_u16(&p->c);
		break;
	default:
		for (uint8_t i = 0; i < p->lengths[opcode]; i++)
			(void)dwarf_uleb(&p->c);
	}
	return 0;
}

static int run_program(struct line_program *p, struct run *run)
{
	int r = 0;

	run_reset(run);
	while (r == 0 && cursor_left(&p->c) > 0) {
		uint8_t opcode = cursor_u8(&p->c);

		if (opcode >= p->opcode_base) {
			uint8_t special = (uint8_t)(opcode - p->opcode_base);

			run->address += (uint64_t)(special / p->line_range) * p->min_inst;
			run->line += (uint32_t)(p->line_base + special % p->line_range);
			r = run_emit(run);
		} else if (opcode == 0) {
			r = run_extended(p, run);
		} else {
			r = run_standard(p, run, opcode);
		}
	}
	return r == 0 && !cursor_ok(&p->c) ? -ENOEXEC : r;
}

static int row_add(struct dwarf_lines *l, uint64_t address, uint32_t line, uint16_t file,
		   uint16_t column)
{
	struct dwarf_line_row *row;

	if (address - l->base > UINT32_MAX)
		return -EFBIG;
	row = array_push(&l->rows);
	if (!row)
		return -ENOMEM;
	*row = (struct dwarf_line_row){(uint32_t)(address - l->base), line, file, column};
	return 0;
}

/* Sorts the rows by address, with an end row after each sequence. */
static int rows_finish(struct run *run, struct dwarf_lines *l)
{
	_cleanup_free_ struct sort_pair *pairs =
		malloc(((size_t)run->sequences.n + 1) * sizeof(*pairs));
	uint64_t end = 0;
	int r = 0;

	if (!pairs)
		return -ENOMEM;
	for (uint32_t i = 0; i < run->sequences.n; i++)
		pairs[i] = (struct sort_pair){run->sequences.items[i].start, i, 0};
	if (sort_pairs(pairs, run->sequences.n) < 0)
		return -ENOMEM;
	l->base = run->sequences.n ? pairs[0].key : 0;
	for (uint32_t i = 0; i < run->sequences.n && r == 0; i++) {
		const struct sequence *s = &run->sequences.items[pairs[i].value];

		if (s->start < end)
			continue;
		if (l->rows.n && s->start == end)
			l->rows.n--; /* no gap: the end row is not needed */
		for (uint32_t j = 0; j < s->n && r == 0; j++) {
			const struct raw_row *raw = &run->rows.items[s->first + j];

			r = row_add(l, raw->address, raw->line, raw->file, raw->column);
		}
		if (r == 0)
			r = row_add(l, s->end, 0, MAX_FILES, 0);
		end = s->end;
	}
	return r;
}

void dwarf_lines_load(struct dwarf *d, struct dwarf_unit *u)
{
	struct run run = {.rows = ARRAY_INIT(MAX_ROWS), .sequences = ARRAY_INIT(MAX_ROWS)};
	struct dwarf_lines *l = calloc(1, sizeof(*l));
	struct line_program p = {.d = d};
	int r = l ? 0 : -ENOMEM;

	if (l) {
		l->dirs.max = l->files.max = MAX_FILES;
		l->rows.max = 2 * MAX_ROWS;
		r = header_read(&p, u, l);
	}
	if (r == 0)
		r = run_program(&p, &run);
	if (r == 0)
		r = rows_finish(&run, l);
	array_deinit(&run.rows);
	array_deinit(&run.sequences);
	if (r < 0) {
		dwarf_lines_free(l);
		l = NULL;
		u->lines_bad = true;
		dwarf_refuse(d, r);
	}
	u->lines = l;
}

bool dwarf_lines_find(const struct dwarf_lines *l, uint64_t address, uint32_t *ret_file,
		      uint32_t *ret_line, uint32_t *ret_column)
{
	const struct dwarf_line_row *row;
	uint32_t n;

	if (address < l->base || address - l->base > UINT32_MAX)
		return false;
	n = bisect(l->rows.n, i, l->rows.items[i].at <= address - l->base);
	if (n == 0 || l->rows.items[n - 1].file == MAX_FILES)
		return false;
	row = &l->rows.items[n - 1];
	*ret_file = row->file;
	*ret_line = row->line;
	*ret_column = row->column;
	return true;
}

/* ---- Paths ---- */

static const char *place_text(struct dwarf *d, struct dwarf_line_place p)
{
	struct cursor c = dwarf_section_at(d, p.section, p.offset);
	const char *text;

	if (cursor_left(&c) > MAX_PATH)
		c.end = c.cur + MAX_PATH;
	text = cursor_string(&c);
	return text ? text : "";
}

/* Appends a part of a path; an absolute part replaces the path. */
static void path_append(char path[MAX_PATH], size_t *n, const char *part)
{
	int r;

	while (part[0] == '.' && part[1] == '/')
		part += 2;
	if (!*part || strcmp(part, ".") == 0)
		return;
	if (*part == '/')
		*n = 0;
	r = snprintf(path + *n, MAX_PATH - *n, "%s%s", *n && path[*n - 1] != '/' ? "/" : "", part);
	if (r > 0)
		*n = *n + (size_t)r < MAX_PATH ? *n + (size_t)r : MAX_PATH - 1;
}

/* Not inlined into dwarf_lines_path(): clearing the path costs a page of stack. */
static __attribute__((noinline)) strid path_make(struct dwarf *d, struct dwarf_unit *u,
						 uint32_t file)
{
	const char *unit_dir, *unit_name;
	const struct dwarf_lines *l = u->lines;
	const struct dwarf_line_file *f = &l->files.items[file];
	char path[MAX_PATH] = "";
	size_t n = 0;

	dwarf_unit_names(d, u, &unit_dir, &unit_name);
	/* In DWARF 5 the first directory is the compilation directory, which may be relative. */
	if (l->version >= 5 && l->dirs.n)
		path_append(path, &n, place_text(d, l->dirs.items[0]));
	if (n == 0)
		path_append(path, &n, unit_dir);
	if (l->version < 5 && file == 0) {
		path_append(path, &n, unit_name);
	} else {
		if (f->dir > 0 && f->dir < l->dirs.n)
			path_append(path, &n, place_text(d, l->dirs.items[f->dir]));
		path_append(path, &n, place_text(d, f->name));
	}
	return strtab_put_n(&d->texts, path, n);
}

strid dwarf_lines_path(struct dwarf *d, struct dwarf_unit *u, uint32_t file)
{
	struct dwarf_lines *l = u->lines;
	struct dwarf_line_file *f;

	if (!l || file >= l->files.n)
		return STRID_EMPTY;
	f = &l->files.items[file];
	if (f->path == STRID_EMPTY)
		f->path = path_make(d, u, file);
	return f->path;
}
