/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF in the hands of strangers.
 *
 * What is read, and when: nothing at the start; at the first address one page for each unit, which
 * gives the map from addresses to units; at the first address in a unit all entries and the line
 * program of that unit, of which two sorted arrays remain; at any later address three binary
 * searches, and the names of the functions found. What remains of units is kept within
 * limits.max_line_bytes, those not used for longest go first.
 *
 * Why not libdw, which walks CFI for us elsewhere: it inflates every section when it opens a file,
 * keeps whatever it decoded until the end, has no limit on rows, and decodes attributes one by one
 * through the abbreviation each time. Here work and memory are bounded by the limits of the parts
 * (dwarf-*.c), and a unit that is over one of them loses lines or inlined calls, nothing else does;
 * of too many units the first ones stay.
 *
 * Not read: type units, which have no code and name no functions. What -gsplit-dwarf put into other
 * files is read from there (dwarf-split.c). The supplementary file of dwz, where distributions put
 * what several files of a package have in common, is a second struct dwarf of which only entries
 * and names are wanted.
 */
#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>

#include "symbolize/dwarf-internal.h"

#define MAX_TEXTS_BYTES (UINT64_C(16) << 20) /* names and paths */
#define MAX_WORK	(UINT64_C(32) << 20) /* some 100 ms; the first lookup in a browser: 10 */
/* All units: compilers put the entry that each begins with some 50 abbreviations, or a kilobyte,
 * into its table. */
#define MAX_OPEN_WORK (UINT64_C(128) << 20)

static const char *const section_names[DWARF_N_SECTIONS] = {
	[DWARF_INFO] = ".debug_info",	      [DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_STR] = ".debug_str",	      [DWARF_LINE] = ".debug_line",
	[DWARF_LINE_STR] = ".debug_line_str", [DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",	      [DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists", [DWARF_ARANGES] = ".debug_aranges",
};

/* As .debug_x, or as .zdebug_x: compressed by GNU tools of before 2015. */
static const struct elf_section *section_find(const struct elf_image *im, const char *name,
					      bool *ret_zdebug)
{
	const struct elf_section *s = elf_image_find(im, name);
	char old[32];

	*ret_zdebug = false;
	if (s)
		return s;
	(void)snprintf(old, sizeof(old), ".z%s", name + 1);
	s = elf_image_find(im, old);
	*ret_zdebug = s != NULL;
	return s;
}

int dwarf_make(struct dwarf **ret, const struct elf_image *im, const struct symbol_limits *limits,
	       const char *const names[DWARF_N_SECTIONS])
{
	const struct elf_section *s[DWARF_N_SECTIONS] = {0};
	bool zdebug[DWARF_N_SECTIONS] = {0};
	struct dwarf *d;

	*ret = NULL;
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		if (names[i])
			s[i] = section_find(im, names[i], &zdebug[i]);
	if (im->fd < 0 || !s[DWARF_INFO] || !s[DWARF_ABBREV] || s[DWARF_INFO]->type == SHT_NOBITS)
		return 1;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->limits = *limits;
	d->loaded.max = UINT32_MAX;
	strtab_init(&d->texts, MAX_TEXTS_BYTES);
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		if (s[i] && s[i]->type != SHT_NOBITS)
			d->sections[i].header = *s[i];
		if (zdebug[i])
			d->sections[i].header.flags |= SHF_COMPRESSED;
	}
	d->image = (struct elf_image)ELF_IMAGE_INIT;
	d->image.n_bytes = im->n_bytes;
	d->image.is64 = im->is64;
	d->image.fd = fcntl(im->fd, F_DUPFD_CLOEXEC, 0);
	if (d->image.fd < 0) {
		int r = -errno;

		(void)dwarf_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

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

/* Lists that many entries share would be read many times: the sum has a limit too. */
bool dwarf_work(struct dwarf *d, uint64_t n)
{
	bool enough;

	d = d->main ? d->main : d;
	enough = d->work >= n;
	d->work -= enough ? n : d->work;
	return enough;
}

void dwarf_refuse(struct dwarf *d, int reason)
{
	d->n_refused++;
	if (reason == -ENOMEM)
		(d->main ? d->main : d)->no_memory = true;
}

/* ---- What is kept of units ---- */

static size_t unit_bytes(const struct dwarf_unit *u)
{
	return (u->abbrevs ? sizeof(*u->abbrevs) + array_bytes(&u->abbrevs->items) +
				     array_bytes(&u->abbrevs->specs)
			   : 0) +
	       (u->code ? dwarf_code_bytes(u->code) : 0) +
	       (u->lines ? dwarf_lines_bytes(u->lines) : 0) +
	       (u->split ? dwarf_bytes(u->split) : 0);
}

static void unit_unload(struct dwarf *d, struct dwarf_unit *u)
{
	dwarf_abbrevs_free(u->abbrevs);
	dwarf_code_free(u->code);
	dwarf_lines_free(u->lines);
	u->abbrevs = NULL;
	u->code = NULL;
	u->lines = NULL;
	u->is_split_code = false;
	d->n_splits -= u->split != NULL;
	u->split = dwarf_free(u->split);
	d->n_unit_bytes -= u->n_bytes;
	u->n_bytes = 0;
}

bool dwarf_unit_account(struct dwarf *d, struct dwarf_unit *u)
{
	size_t n = unit_bytes(u);
	uint32_t *item;

	u->used = d->turn;
	if (n == u->n_bytes)
		return true;
	if (u->n_bytes == 0) {
		item = array_push(&d->loaded);
		if (!item) {
			unit_unload(d, u);
			return false;
		}
		*item = (uint32_t)(u - d->units.items);
	}
	d->n_unit_bytes += n - u->n_bytes;
	u->n_bytes = n;
	return true;
}

/* The units used least lately go, but never one of this turn. */
static void units_evict(struct dwarf *d, size_t max_bytes)
{
	while (d->n_unit_bytes > max_bytes) {
		uint32_t oldest = DWARF_NONE;

		for (uint32_t i = 0; i < d->loaded.n; i++) {
			const struct dwarf_unit *u = &d->units.items[d->loaded.items[i]];

			if (u->used != d->turn &&
			    (oldest == DWARF_NONE ||
			     u->used < d->units.items[d->loaded.items[oldest]].used))
				oldest = i;
		}
		if (oldest == DWARF_NONE)
			return;
		unit_unload(d, &d->units.items[d->loaded.items[oldest]]);
		d->loaded.items[oldest] = d->loaded.items[--d->loaded.n];
	}
}

static void units_forget(struct dwarf *d)
{
	for (uint32_t i = 0; i < d->loaded.n; i++)
		unit_unload(d, &d->units.items[d->loaded.items[i]]);
	array_deinit(&d->loaded);
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

void dwarf_forget(struct dwarf *d)
{
	if (d->alt)
		dwarf_forget(d->alt);
	dwarf_sections_release(d, true);
	units_forget(d);
	dwarf_splits_free(d);
	array_deinit(&d->units);
	array_deinit(&d->map.changes);
	strtab_deinit(&d->texts);
	strtab_init(&d->texts, MAX_TEXTS_BYTES);
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		d->sections[i].bad = false;
	d->opened = d->no_memory = false;
}

struct dwarf *dwarf_free(struct dwarf *d)
{
	if (!d)
		return NULL;
	dwarf_forget(d);
	(void)dwarf_free(d->alt);
	(void)close_fd(d->image.fd);
	free(d);
	return NULL;
}

size_t dwarf_bytes(const struct dwarf *d)
{
	return sizeof(*d) + d->n_inflated + d->n_unit_bytes + array_bytes(&d->units) +
	       array_bytes(&d->map.changes) + array_bytes(&d->loaded) + strtab_bytes(&d->texts) +
	       (d->package ? dwarf_package_bytes(d->package) : 0) +
	       (d->alt ? dwarf_bytes(d->alt) : 0);
}

uint64_t dwarf_refused(const struct dwarf *d)
{
	return d->n_refused + d->texts.n_refused + (d->alt ? dwarf_refused(d->alt) : 0);
}

/* ---- Lookup ---- */

/* Codes given out since DWARF 5 (dwarfstd.org/languages.html), which compilers use with it: gcc
 * from 15 on, zig. */
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

void dwarf_ensure_open(struct dwarf *d)
{
	uint64_t work = d->work;
	int r;

	if (d->opened)
		return;
	d->opened = true;
	d->work = MAX_OPEN_WORK;
	r = dwarf_units_open(d);
	if (r < 0) {
		dwarf_refuse(d, r);
		array_deinit(&d->map.changes);
	}
	d->work = work;
}

/* Of a skeleton what it stands for, if that is there. */
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

/* The chain of a unit's functions from the innermost one on, at most max of them. */
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

		if (n == max) { /* the innermost one goes */
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
	/* Only now: a text that is added moves the others. */
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
	units_evict(d, d->limits.max_line_bytes);
	if (d->alt)
		units_evict(d->alt, d->limits.max_line_bytes);
	if (n == 0)
		return 1;
	*ret_n = n;
	*ret_language = language_name(u->language);
	return 0;
}
