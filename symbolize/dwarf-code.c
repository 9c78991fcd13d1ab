/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions and inlined calls of one unit.
 *
 * One pass goes over the entries of a unit, with a bounded stack of the enclosing ones; nothing
 * recurses. Each function and inlined call with code becomes a node that knows the one it is
 * inlined into. Their ranges nest, and are flattened into one map (dwarf-map.c): an address takes
 * one binary search, its chain of callers is a walk over parents. Names are read only when a lookup
 * wants them.
 *
 * Most entries are types and variables. Most abbreviations have only attributes of fixed size; one
 * addition skips their entries.
 */
#include <dwarf.h>

#include "symbolize/dwarf-internal.h"

/* Real code nests some 60 deep; a unit of whole-program optimisation has some million entries. */
#define MAX_DEPTH    256
#define MAX_ENTRIES  (1u << 23)
#define MAX_NODES    (1u << 21)
#define MAX_RANGES   (1u << 22)
#define ENTRY_IS_ALT (UINT64_C(1) << 63) /* marks entries of the supplementary file */
#define MAX_ORIGINS  16

/* ---- The walk ---- */

struct code_walk {
	struct dwarf *d;
	struct dwarf_unit *u;
	const struct dwarf_abbrevs *abbrevs;
	struct dwarf_code *code;
	dwarf_ranges ranges;
	uint32_t depth;
	uint32_t around[MAX_DEPTH]; /* by depth: the innermost node */
};

static bool entry_skip(struct code_walk *w, struct cursor *c, const struct dwarf_abbrev *a)
{
	struct dwarf_value v;

	if (a->fixed != DWARF_NONE)
		return cursor_take(c, a->fixed);
	for (uint32_t i = 0; i < a->n; i++)
		if (!dwarf_value_read(c, w->u, &w->abbrevs->specs.items[a->first + i], &v))
			return false;
	return true;
}

/* Types never hold code, but may hold many entries. Skips them if the compiler gives a sibling. */
static bool entry_skip_children(struct code_walk *w, struct cursor *c, const struct dwarf_abbrev *a)
{
	struct dwarf_value v = {0}, sibling = {0};
	uint64_t target;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct dwarf_spec *s = &w->abbrevs->specs.items[a->first + i];

		if (!dwarf_value_read(c, w->u, s, &v))
			return false;
		if (s->name == DW_AT_sibling)
			sibling = v;
	}
	target = dwarf_value_reference(w->u, &sibling);
	/* Only forwards, so that the pass over the unit ends. */
	if (a->children && target < w->u->end && c->start + target > c->cur)
		c->cur = c->start + target;
	else if (a->children)
		w->around[w->depth++] = DWARF_NONE;
	return true;
}

struct function {
	struct dwarf_value low, high, ranges, call_file, call_line, call_column, sibling;
	bool declaration;
};

static bool function_read(struct code_walk *w, struct cursor *c, const struct dwarf_abbrev *a,
			  struct function *ret)
{
	*ret = (struct function){0};
	for (uint32_t i = 0; i < a->n; i++) {
		const struct dwarf_spec *s = &w->abbrevs->specs.items[a->first + i];
		struct dwarf_value v = {0};

		if (!dwarf_value_read(c, w->u, s, &v))
			return false;
		switch (s->name) {
		case DW_AT_low_pc:
			ret->low = v;
			break;
		case DW_AT_high_pc:
			ret->high = v;
			break;
		case DW_AT_ranges:
			ret->ranges = v;
			break;
		case DW_AT_call_file:
			ret->call_file = v;
			break;
		case DW_AT_call_line:
			ret->call_line = v;
			break;
		case DW_AT_call_column:
			ret->call_column = v;
			break;
		case DW_AT_sibling:
			ret->sibling = v;
			break;
		case DW_AT_declaration:
			ret->declaration = v.u;
			break;
		default:
			break;
		}
	}
	return true;
}

static uint32_t clamp(uint64_t v, uint32_t max)
{
	return v <= max ? (uint32_t)v : 0;
}

/* Adds a node for a function or inlined call with code. 0 or -errno. */
static int function_add(struct code_walk *w, struct cursor *c, const struct dwarf_abbrev *a,
			uint64_t entry)
{
	bool inlined = a->tag == DW_TAG_inlined_subroutine;
	uint32_t parent = inlined ? w->around[w->depth - 1] : DWARF_NONE, first = w->ranges.n;
	uint32_t node = parent;
	struct function f;
	uint64_t target;
	int r;

	if (!function_read(w, c, a, &f))
		return -ENOEXEC;
	r = dwarf_ranges_add(w->d, w->u, &f.low, &f.high, &f.ranges, w->code->nodes.n, &w->ranges);
	if (r < 0)
		return r;
	/* An inlined call without code of its own may still contain others with code. */
	if (inlined ? parent != DWARF_NONE : w->ranges.n > first) {
		struct dwarf_node *n = array_push(&w->code->nodes);

		if (!n)
			return w->code->nodes.n == MAX_NODES ? -EFBIG : -ENOMEM;
		*n = (struct dwarf_node){.entry = (uint32_t)(entry - w->u->offset),
					 .parent = parent,
					 .call_file = clamp(f.call_file.u, UINT32_MAX),
					 .call_line = clamp(f.call_line.u, UINT32_MAX),
					 .call_column =
						 (uint16_t)clamp(f.call_column.u, UINT16_MAX)};
		node = w->code->nodes.n - 1;
	} else {
		w->ranges.n = first;
	}
	target = dwarf_value_reference(w->u, &f.sibling);
	if (a->children && f.declaration && target < w->u->end && c->start + target > c->cur)
		c->cur = c->start + target;
	else if (a->children)
		w->around[w->depth++] = node;
	return 0;
}

static int walk_entries(struct code_walk *w)
{
	struct cursor c = dwarf_section_at(w->d, DWARF_INFO, w->u->entries);

	if (!cursor_ok(&c))
		return -ENOEXEC;
	c.end = c.start + w->u->end;
	w->around[w->depth++] = DWARF_NONE; /* around the unit's own children */
	for (uint32_t n = 0; cursor_left(&c) > 0; n++) {
		uint64_t entry = (uint64_t)(c.cur - c.start), code = dwarf_uleb(&c);
		const struct dwarf_abbrev *a;
		int r = 0;

		if (code == 0) {
			if (w->depth <= 1)
				break;
			w->depth--;
			continue;
		}
		a = dwarf_abbrev_find(w->abbrevs, code);
		if (!a)
			return -ENOEXEC;
		if (n == MAX_ENTRIES || w->depth == MAX_DEPTH)
			return -EFBIG;
		switch (a->tag) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
			r = function_add(w, &c, a, entry);
			break;
		case DW_TAG_enumeration_type:
		case DW_TAG_array_type:
		case DW_TAG_subroutine_type:
			r = entry_skip_children(w, &c, a) ? 0 : -ENOEXEC;
			break;
		default:
			if (!entry_skip(w, &c, a))
				return -ENOEXEC;
			if (a->children) {
				w->around[w->depth] = w->around[w->depth - 1];
				w->depth++;
			}
		}
		if (r < 0)
			return r;
	}
	return cursor_ok(&c) ? 0 : -ENOEXEC;
}

/* ---- The tables ---- */

int dwarf_code_load(struct dwarf *d, struct dwarf_unit *u, struct dwarf_code **ret)
{
	struct code_walk w = {.d = d, .u = u, .ranges = ARRAY_INIT(MAX_RANGES)};
	int r;

	w.abbrevs = dwarf_unit_abbrevs(d, u);
	w.code = calloc(1, sizeof(*w.code));
	r = w.code ? -ENOEXEC : -ENOMEM;
	if (w.abbrevs && w.code) {
		w.code->nodes.max = w.code->known.max = MAX_NODES;
		r = walk_entries(&w);
		if (r == 0)
			r = dwarf_map_build(&w.code->map, &w.ranges);
	}
	array_deinit(&w.ranges);
	if (r < 0) {
		dwarf_code_free(w.code);
		return r;
	}
	dwarf_array_shrink(&w.code->nodes);
	*ret = w.code;
	return 0;
}

uint32_t dwarf_code_find(const struct dwarf_code *c, uint64_t address)
{
	return dwarf_map_find(&c->map, address);
}

const struct dwarf_node *dwarf_code_node(const struct dwarf_code *c, uint32_t node)
{
	return &c->nodes.items[node];
}

/* ---- Names ---- */

/* An entry of this file or of its supplementary file. entry UINT64_MAX: none. */
struct dwarf_place {
	struct dwarf *d;
	struct dwarf_unit *u; /* the unit that may hold it */
	uint64_t entry;
};

/* Reads from one entry what is still missing, and moves to the entry it refers to as its origin. */
static void entry_describe(struct dwarf_place *p, const char **name, const char **linkage_name,
			   uint32_t *line)
{
	struct dwarf *d = p->d;
	struct dwarf_unit *u = p->u;
	struct cursor c = dwarf_section_at(d, DWARF_INFO, p->entry);
	const struct dwarf_abbrevs *abbrevs = dwarf_unit_abbrevs(d, u);
	uint64_t code = dwarf_uleb(&c), alt = UINT64_MAX;
	const struct dwarf_abbrev *a = abbrevs && code ? dwarf_abbrev_find(abbrevs, code) : NULL;

	p->entry = UINT64_MAX;
	for (uint32_t i = 0; a && i < a->n; i++) {
		const struct dwarf_spec *s = &abbrevs->specs.items[a->first + i];
		struct dwarf_value v = {0};

		if (!dwarf_value_read(&c, u, s, &v))
			break;
		switch (s->name) {
		case DW_AT_name:
			*name = *name ? *name : dwarf_value_text(d, u, &v);
			break;
		case DW_AT_linkage_name:
		case DW_AT_MIPS_linkage_name:
			*linkage_name = *linkage_name ? *linkage_name : dwarf_value_text(d, u, &v);
			break;
		case DW_AT_decl_line:
			*line = *line ? *line : clamp(v.u, UINT32_MAX);
			break;
		case DW_AT_abstract_origin:
		case DW_AT_specification:
			p->entry = dwarf_value_reference(u, &v);
			alt = dwarf_value_alt_reference(&v);
			break;
		default:
			break;
		}
	}
	if (alt != UINT64_MAX && d->alt) {
		dwarf_ensure_open(d->alt);
		*p = (struct dwarf_place){d->alt, dwarf_unit_of_entry(d->alt, alt), alt};
	}
}

static void function_describe(struct dwarf *d, struct dwarf_unit *u, uint64_t entry,
			      struct dwarf_frame *ret)
{
	const char *name = NULL, *linkage_name = NULL;
	struct dwarf_place p = {d, u, entry};

	for (int i = 0; i < MAX_ORIGINS && p.entry != UINT64_MAX; i++) {
		if (!p.u || p.entry < p.u->entries || p.entry >= p.u->end)
			p.u = dwarf_unit_of_entry(p.d, p.entry);
		if (!p.u || p.entry < p.u->entries)
			break;
		ret->entry = p.d == d ? p.entry : p.entry | ENTRY_IS_ALT;
		entry_describe(&p, &name, &linkage_name, &ret->start_line);
	}
	ret->name = linkage_name && *linkage_name ? linkage_name : name;
}

void dwarf_code_describe(struct dwarf *d, struct dwarf_unit *u, uint32_t node,
			 struct dwarf_frame *ret, strid *ret_name)
{
	struct dwarf_node *n = &u->code->nodes.items[node];
	struct dwarf_known *k = n->known ? &u->code->known.items[n->known - 1] : NULL;
	struct dwarf_unit *in = u;

	*ret_name = k ? k->name : STRID_EMPTY;
	if (k) {
		ret->start_line = k->start_line;
		ret->entry = k->entry;
		return;
	}
	if (u->is_split_code)
		in = dwarf_split_open(d, u);
	if (!in)
		return;
	function_describe(in == u ? d : u->split, in, in->offset + n->entry, ret);
	if (in != u) /* the skeleton tells the entries of split files apart */
		ret->entry |= (uint64_t)(u - d->units.items + 1) << 32;
	*ret_name = strtab_put(&d->texts, ret->name ? ret->name : "");
	if (*ret_name == STRID_EMPTY && ret->name && *ret->name)
		return; /* the store is full */
	k = array_push(&u->code->known);
	if (k) {
		*k = (struct dwarf_known){ret->entry, *ret_name, ret->start_line};
		n->known = u->code->known.n;
	}
}
