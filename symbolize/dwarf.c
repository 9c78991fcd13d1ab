/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines from DWARF of untrusted files.
 *
 * Nothing is read at the start. The first lookup reads one page for each unit and makes the map
 * from addresses to units. The first lookup in a unit reads all entries and the line program of
 * that unit, and keeps two sorted arrays. Any later lookup takes three binary searches, and reads
 * the names of the functions found. The arrays of all units stay within limits.max_line_bytes; the
 * least recently used go first.
 *
 * Why not libdw, which reads CFI for us elsewhere: it inflates every section when it opens a file,
 * keeps all that it decoded until the end, has no limit on rows, and decodes attributes one by one
 * through the abbreviation each time. Here the limits of the parts (dwarf-*.c) bound work and
 * memory. A unit that exceeds one loses its lines or inlined calls, and no other unit does; if
 * there are too many units, the first ones are kept.
 *
 * Not read: type units, which have no code and name no functions. Split files (-gsplit-dwarf) are
 * read by dwarf-split.c. The supplementary file of dwz holds what several files of a distribution's
 * package have in common; it is a second struct dwarf, used only for its entries and names.
 */
#include <dwarf.h>

#include "symbolize/dwarf-internal.h"

#define MAX_WORK (UINT64_C(32) << 20) /* some 100 ms; the first lookup in a browser: 10 */

static const char *const section_names[DWARF_N_SECTIONS] = {
	[DWARF_INFO] = ".debug_info",	      [DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_STR] = ".debug_str",	      [DWARF_LINE] = ".debug_line",
	[DWARF_LINE_STR] = ".debug_line_str", [DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",	      [DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists", [DWARF_ARANGES] = ".debug_aranges",
};

int dwarf_new(struct dwarf **ret, const struct elf_image *im, const struct symbol_limits *limits,
	      uint64_t code_start, uint64_t code_end)
{
	int r = dwarf_make(ret, im, limits, section_names);

	if (r == 0) {
		(*ret)->code_start = code_start;
		(*ret)->code_end = code_end;
	}
	return r;
}

void dwarf_set_open_split(struct dwarf *d, symbol_open_split_fn open_split, void *ctx)
{
	d->open_split = open_split;
	d->open_split_ctx = ctx;
}

void dwarf_trim(struct dwarf *d)
{
	bool heavy = d->n_inflated > d->limits.max_line_bytes;

	for (uint32_t i = 0; i < d->loaded.n; i++)
		dwarf_split_close(d, &d->units.items[d->loaded.items[i]]);
	dwarf_sections_release(d, heavy);
	if (d->no_memory || (d->alt && d->alt->no_memory))
		dwarf_forget(d);
	if (d->alt)
		dwarf_trim(d->alt);
}

void dwarf_set_alt(struct dwarf *d, struct dwarf *alt)
{
	d->alt = dwarf_free(d->alt);
	d->alt = alt;
}

uint64_t dwarf_refused(const struct dwarf *d)
{
	return d->n_refused + d->texts.n_refused + (d->alt ? dwarf_refused(d->alt) : 0);
}

/* ---- Lookup ---- */

/* Codes assigned after DWARF 5 (dwarfstd.org/languages.html), which compilers use with it: gcc
 * since 15, zig. */
enum {
	LANGUAGE_ZIG = 0x27,
	LANGUAGE_CXX17 = 0x2a,
	LANGUAGE_CXX20 = 0x2b,
	LANGUAGE_C17 = 0x2c,
	LANGUAGE_FORTRAN18 = 0x2d,
	LANGUAGE_ADA2005 = 0x2e,
	LANGUAGE_ADA2012 = 0x2f,
	LANGUAGE_CXX23 = 0x3a,
	LANGUAGE_C23 = 0x3e,
	LANGUAGE_FORTRAN23 = 0x3f,
};

static const char *language_name(uint16_t language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case LANGUAGE_C17:
	case LANGUAGE_C23:
		return "c";
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANGUAGE_CXX17:
	case LANGUAGE_CXX20:
	case LANGUAGE_CXX23:
		return "c++";
	case DW_LANG_Go:
		return "go";
	case DW_LANG_Rust:
		return "rust";
	case DW_LANG_D:
		return "d";
	case DW_LANG_Fortran77:
	case DW_LANG_Fortran90:
	case DW_LANG_Fortran95:
	case DW_LANG_Fortran03:
	case DW_LANG_Fortran08:
	case LANGUAGE_FORTRAN18:
	case LANGUAGE_FORTRAN23:
		return "fortran";
	case DW_LANG_Ada83:
	case DW_LANG_Ada95:
	case LANGUAGE_ADA2005:
	case LANGUAGE_ADA2012:
		return "ada";
	case DW_LANG_Swift:
		return "swift";
	case LANGUAGE_ZIG:
		return "zig";
	default:
		return NULL;
	}
}

/* Loads a unit's code; for a skeleton that of its split unit, if the file is there. */
static void code_load(struct dwarf *d, struct dwarf_unit *u)
{
	struct dwarf_unit *split = u->is_skeleton ? dwarf_split_open(d, u) : NULL;

	int r;

	u->is_split_code = split && dwarf_code_load(u->split, split, &u->code) == 0;
	r = u->is_split_code ? 0 : dwarf_code_load(d, u, &u->code);
	if (r < 0) {
		u->code_bad = true;
		dwarf_refuse(d, r);
	}
}

static struct dwarf_unit *unit_load(struct dwarf *d, uint64_t vaddr)
{
	struct dwarf_unit *u;

	dwarf_ensure_open(d);
	u = dwarf_unit_of_address(d, vaddr);
	if (!u)
		return NULL;
	if (!u->code && !u->code_bad)
		code_load(d, u);
	if (!u->lines && !u->lines_bad && u->line_offset != UINT64_MAX && !d->limits.only_inlined)
		dwarf_lines_load(d, u);
	return u;
}

static void lookup_begin(struct dwarf *d)
{
	d->turn++;
	d->work = MAX_WORK;
	if (d->alt) {
		d->alt->turn++;
		d->alt->work = MAX_WORK;
	}
}

/* The chain of a unit's functions, innermost first, at most max of them. */
static size_t chain_make(struct dwarf *d, struct dwarf_unit *u, uint64_t vaddr,
			 struct dwarf_frame *frames, size_t max)
{
	strid paths[SYMBOL_MAX_CHAIN], names[SYMBOL_MAX_CHAIN];
	uint32_t file, line = 0, column = 0, node;
	bool has_line = u->lines && dwarf_lines_find(u->lines, vaddr, &file, &line, &column);
	size_t n = 0;

	node = u->code ? dwarf_code_find(u->code, vaddr) : DWARF_NONE;
	if (!has_line && node == DWARF_NONE)
		return 0;
	do {
		const struct dwarf_node *at =
			node == DWARF_NONE ? NULL : dwarf_code_node(u->code, node);

		if (n == max) { /* drop the innermost one */
			memmove(frames, frames + 1, (n - 1) * sizeof(*frames));
			memmove(paths, paths + 1, (n - 1) * sizeof(*paths));
			memmove(names, names + 1, (n - 1) * sizeof(*names));
			n--;
		}
		frames[n] = (struct dwarf_frame){.line = line, .column = column};
		names[n] = STRID_EMPTY;
		paths[n] = has_line ? dwarf_lines_path(d, u, file) : STRID_EMPTY;
		if (at)
			dwarf_code_describe(d, u, node, &frames[n], &names[n]);
		n++;
		if (!at || at->parent == DWARF_NONE)
			break;
		file = at->call_file;
		line = u->lines ? at->call_line : 0;
		column = u->lines ? at->call_column : 0;
		has_line = u->lines && line;
		node = at->parent;
	} while (true);
	/* Only now, because adding a text may move the others. */
	for (size_t i = 0; i < n; i++) {
		frames[i].file = paths[i] == STRID_EMPTY ? NULL : strtab_get(&d->texts, paths[i]);
		if (names[i] != STRID_EMPTY)
			frames[i].name = strtab_get(&d->texts, names[i]);
	}
	return n;
}

int dwarf_lookup(struct dwarf *d, uint64_t vaddr, struct dwarf_frame *frames, size_t max,
		 size_t *ret_n, const char **ret_language)
{
	struct dwarf_unit *u;
	size_t n;

	lookup_begin(d);
	u = unit_load(d, vaddr);
	if (!u || max == 0)
		return 1;
	n = chain_make(d, u, vaddr, frames, max < SYMBOL_MAX_CHAIN ? max : SYMBOL_MAX_CHAIN);
	(void)dwarf_unit_account(d, u);
	dwarf_units_evict(d, d->limits.max_line_bytes);
	if (d->alt)
		dwarf_units_evict(d->alt, d->limits.max_line_bytes);
	if (n == 0)
		return 1;
	*ret_n = n;
	*ret_language = language_name(u->language);
	return 0;
}
