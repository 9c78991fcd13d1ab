/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the DWARF reader, and only for them. */
#include "symbolize/dwarf.h"
#include "util/array.h"
#include "util/cursor.h"
#include "util/strtab.h"

#define DWARF_NONE UINT32_MAX

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_N_SECTIONS
};

struct dwarf_section_state {
	struct elf_section header; /* size 0: there is none */
	struct elf_bytes bytes;	   /* data NULL: not mapped now */
	bool bad;
};

/* ---- Attributes ---- */

struct dwarf_spec {
	uint16_t name, form;
	int32_t constant; /* DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first, n; /* rows of specs */
	uint32_t fixed;	   /* bytes of all its attributes; DWARF_NONE: not fixed */
	uint16_t tag;
	bool children;
};

struct dwarf_abbrevs {
	ARRAY(struct dwarf_abbrev) items;
	ARRAY(struct dwarf_spec) specs;
	bool dense; /* code c is item c - 1; else they are sorted by code */
};

/* The value of an attribute, as encoded; the form says what u means. form 0: absent. */
struct dwarf_value {
	uint16_t form;
	uint64_t u;
	const char *text; /* DW_FORM_string */
};

/* ---- Units ---- */

struct dwarf_range {
	uint64_t start, end;
	uint32_t node; /* or unit */
};
typedef ARRAY(struct dwarf_range) dwarf_ranges;

/* The innermost node changes here. */
struct dwarf_change {
	uint32_t at;   /* from the map's base */
	uint32_t node; /* DWARF_NONE: none */
};

/* Maps an address to the innermost of the ranges that hold it. */
struct dwarf_map {
	uint64_t base;
	ARRAY(struct dwarf_change) changes;
};

struct dwarf_package;

/* Functions and inlined calls of a unit (dwarf-code.c). */
struct dwarf_node {
	uint32_t entry;	 /* from the unit's offset */
	uint32_t parent; /* DWARF_NONE: a function of its own; else this is inlined there */
	uint32_t call_file, call_line;
	uint32_t known; /* its row in known + 1; 0: nothing read yet */
	uint16_t call_column;
};

/* What a call chain needs to know about a function. */
struct dwarf_known {
	uint64_t entry;
	strid name;
	uint32_t start_line;
};

struct dwarf_code {
	ARRAY(struct dwarf_node) nodes;
	ARRAY(struct dwarf_known) known;
	struct dwarf_map map;
};

/* Source lines (dwarf-line.c). */
/* The place of a text, because the sections may be unmapped later. */
struct dwarf_line_place {
	uint64_t offset;
	uint32_t section;
};

struct dwarf_line_file {
	struct dwarf_line_place name;
	uint32_t dir;
	strid path; /* STRID_EMPTY: not made yet */
};

struct dwarf_line_row {
	uint32_t at; /* from base */
	uint32_t line;
	uint16_t file, column; /* file MAX_FILES of dwarf-line.c: after a sequence */
};

struct dwarf_lines {
	uint64_t base;
	ARRAY(struct dwarf_line_row) rows;
	ARRAY(struct dwarf_line_place) dirs;
	ARRAY(struct dwarf_line_file) files;
	uint8_t version;
};

struct dwarf_unit {
	uint64_t offset, entries, end; /* in .debug_info: header, first entry, end */
	uint64_t abbrev_offset;
	uint64_t low_pc, str_offsets_base, addr_base, rnglists_base;
	uint64_t line_offset; /* UINT64_MAX: no line table */
	uint64_t dwo_id;
	uint8_t version, address_size, offset_size;
	bool is_code, code_bad, lines_bad; /* is_code: a unit that may have machine code */
	/* the rest of it is in another file; that file is missing */
	bool is_skeleton, split_bad;
	bool is_split_code; /* code comes from that file */
	uint16_t language;  /* DW_LANG_ */
	/* Loaded on need; NULL: not now. */
	struct dwarf_abbrevs *abbrevs;
	struct dwarf_code *code;
	struct dwarf_lines *lines;
	struct dwarf *split;
	uint64_t used;
	size_t n_bytes; /* of these four together */
};

struct dwarf {
	struct symbol_limits limits;
	struct elf_image image; /* its descriptor is ours; no sections */
	struct dwarf_section_state sections[DWARF_N_SECTIONS];
	uint64_t n_inflated, n_mapped; /* bytes */
	uint64_t code_start, code_end;
	bool opened;
	ARRAY(struct dwarf_unit) units; /* by offset */
	struct dwarf_map map;		/* units by address */
					/* unit of an address: sorted, without overlaps */
	ARRAY(uint32_t) loaded;		/* units with something loaded */
	size_t n_unit_bytes;
	struct strtab texts; /* names of functions, paths */
	uint64_t turn, n_refused;
	bool no_memory;	    /* some allocation failed; tried again after the next trim */
	uint64_t work;	    /* what this lookup may still do: bytes of abbreviations and the like */
	struct dwarf *alt;  /* the supplementary file; NULL: none */
	struct dwarf *main; /* of a split file: the file with its skeletons; borrowed */
	/* Split files of this one */
	symbol_open_split_fn open_split;
	void *open_split_ctx;
	struct dwarf_package *package;
	bool package_asked;
	uint32_t n_splits, n_splits_missing; /* open now; not found in a row */
};

/* dwarf-budget.c */

/* Takes n from the work that one lookup may cost; false: it is used up. */
bool dwarf_work(struct dwarf *d, uint64_t n);

/* Counts something that was not read, and why. Only after -ENOMEM is it tried again later. */
void dwarf_refuse(struct dwarf *d, int reason);

/* dwarf-file.c */

/* Opens a file and reads the sections in names[] (NULL: not wanted); keeps no descriptor. 0, 1,
 * -errno as dwarf_new(). */
int dwarf_make(struct dwarf **ret, const struct elf_image *im, const struct symbol_limits *limits,
	       const char *const names[DWARF_N_SECTIONS]);

/* Counts what is loaded of the unit; false: no memory, and everything has been unloaded. */
bool dwarf_unit_account(struct dwarf *d, struct dwarf_unit *u);

/* Unloads the least recently used units, but none that this lookup uses, until all together keep at
 * most max_bytes. */
void dwarf_units_evict(struct dwarf *d, size_t max_bytes);
/* Frees abbreviations that no unit owns yet. NULL is allowed. */
void dwarf_abbrevs_free(struct dwarf_abbrevs *a);
void dwarf_code_free(struct dwarf_code *c);
void dwarf_lines_free(struct dwarf_lines *l);

/* dwarf-read.c */

/* The section, mapped and inflated if needed; empty if there is none or it is refused. */
struct cursor dwarf_section(struct dwarf *d, enum dwarf_section which);
/* The section from an offset on; failed if the offset is outside. */
struct cursor dwarf_section_at(struct dwarf *d, enum dwarf_section which, uint64_t offset);
void dwarf_sections_release(struct dwarf *d, bool inflated_too);

uint64_t dwarf_uleb(struct cursor *c);
int64_t dwarf_sleb(struct cursor *c);
/* Reads an initial length and the offset size that it implies; 0 on failure. */
uint64_t dwarf_length(struct cursor *c, uint8_t *ret_offset_size);
uint64_t dwarf_uint(struct cursor *c, unsigned int size);

/* Bytes that a form takes in that unit; DWARF_NONE: depends on the value. */
uint32_t dwarf_form_size(const struct dwarf_unit *u, uint16_t form);
/* Reads the next attribute; false: damaged. */
bool dwarf_value_read(struct cursor *c, const struct dwarf_unit *u, const struct dwarf_spec *spec,
		      struct dwarf_value *ret);
const char *dwarf_value_text(struct dwarf *d, const struct dwarf_unit *u,
			     const struct dwarf_value *v);
bool dwarf_value_address(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v,
			 uint64_t *ret);
/* The entry in .debug_info that a reference points to; UINT64_MAX: none in this file. */
uint64_t dwarf_value_reference(const struct dwarf_unit *u, const struct dwarf_value *v);
/* The same for .debug_info of the supplementary file. */
uint64_t dwarf_value_alt_reference(const struct dwarf_value *v);

/* dwarf-abbrev.c */

/* All the unit's abbreviations; NULL: damaged, over a limit or no memory. Kept with the unit. */
const struct dwarf_abbrevs *dwarf_unit_abbrevs(struct dwarf *d, struct dwarf_unit *u);
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *a, uint64_t code);
/* Reads the abbreviation of one code, without all others: 0, -ENOEXEC, -ENOMEM, or -EFBIG: the
 * lookup may do no more work. */
int dwarf_abbrev_read_one(struct dwarf *d, const struct dwarf_unit *u, uint64_t code,
			  struct dwarf_abbrevs *ret);

/* dwarf-map.c */

/* 0; -EFBIG: more than 4 GiB of addresses; -ENOMEM. */
int dwarf_map_build(struct dwarf_map *m, const dwarf_ranges *ranges);
uint32_t dwarf_map_find(const struct dwarf_map *m, uint64_t address);

/* Frees the unused memory of a complete array. */
#define dwarf_array_shrink(a)                                                                      \
	do {                                                                                       \
		void *shrunk_ = realloc((a)->items, ((size_t)(a)->n + 1) * sizeof(*(a)->items));   \
		if (shrunk_) {                                                                     \
			(a)->items = shrunk_;                                                      \
			(a)->cap = (a)->n + 1;                                                     \
		}                                                                                  \
	} while (0)

/* dwarf-units.c */

/* Finds the units and their addresses, once. Leaves out damaged units, and all units after one that
 * exceeds a limit. */
void dwarf_ensure_open(struct dwarf *d);
struct dwarf_unit *dwarf_unit_of_address(struct dwarf *d, uint64_t address);
struct dwarf_unit *dwarf_unit_of_entry(struct dwarf *d, uint64_t offset);
/* The compilation directory of the unit and its main file; "": unknown. */
void dwarf_unit_names(struct dwarf *d, const struct dwarf_unit *u, const char **ret_dir,
		      const char **ret_name);
/* Adds the ranges that low_pc, high_pc and ranges give (form 0: absent). 0; -ENOEXEC: damaged;
 * -EFBIG: the array is full; -ENOMEM. Empty ranges and those outside of the code are left out. */
int dwarf_ranges_add(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *low,
		     const struct dwarf_value *high, const struct dwarf_value *ranges,
		     uint32_t node, dwarf_ranges *ret);

/* The split unit with that id; NULL: none. */
struct dwarf_unit *dwarf_unit_of_id(struct dwarf *d, uint64_t dwo_id);
/* Where the rest of a skeleton is, as it says; "": unknown. */
void dwarf_unit_split_names(struct dwarf *d, const struct dwarf_unit *u, const char **ret_dir,
			    const char **ret_name);

/* dwarf-split.c */

/* Opens the split unit of a skeleton; u->split is then its file. NULL: the file is missing or does
 * not belong to the skeleton, and is not tried again. */
struct dwarf_unit *dwarf_split_open(struct dwarf *d, struct dwarf_unit *u);
/* Closes the split file; tables made from it stay. */
void dwarf_split_close(struct dwarf *d, struct dwarf_unit *u);

/* dwarf-package.c */

/*
 * Opens a package of split files (.dwp) and takes fd. 0; -ENOEXEC: not a package; -ENOMEM or
 * -errno.
 */
int dwarf_package_new(struct dwarf_package **ret, int fd);
struct dwarf_package *dwarf_package_free(struct dwarf_package *p);
size_t dwarf_package_bytes(const struct dwarf_package *p);
/* The package's file; the package owns its descriptor. */
const struct elf_image *dwarf_package_image(const struct dwarf_package *p);
/*
 * Finds the part of each section that belongs to the unit with that id. False: not in the package.
 */
bool dwarf_package_find(const struct dwarf_package *p, uint64_t dwo_id,
			struct dwarf_section_state sections[DWARF_N_SECTIONS]);

/* dwarf-code.c */

/* Functions and inlined calls of the unit. 0, -EFBIG, -ENOEXEC or -ENOMEM. */
int dwarf_code_load(struct dwarf *d, struct dwarf_unit *u, struct dwarf_code **ret);
/* The innermost node at the address; DWARF_NONE: none. */
uint32_t dwarf_code_find(const struct dwarf_code *c, uint64_t address);
const struct dwarf_node *dwarf_code_node(const struct dwarf_code *c, uint32_t node);
/* Name, first line and identity of one of the unit's functions, through its origins; read once,
 * then kept. *ret_name: the name's id in d->texts; STRID_EMPTY: only ret has the name, or it is
 * unknown. */
void dwarf_code_describe(struct dwarf *d, struct dwarf_unit *u, uint32_t node,
			 struct dwarf_frame *ret, strid *ret_name);

/* dwarf-line.c */

/* The unit's line table: fills u->lines or sets u->lines_bad. */
void dwarf_lines_load(struct dwarf *d, struct dwarf_unit *u);
/* False: no row covers the address. */
bool dwarf_lines_find(const struct dwarf_lines *l, uint64_t address, uint32_t *ret_file,
		      uint32_t *ret_line, uint32_t *ret_column);
/* The path of a file of the unit, in d->texts; STRID_EMPTY: unknown. */
strid dwarf_lines_path(struct dwarf *d, struct dwarf_unit *u, uint32_t file);
