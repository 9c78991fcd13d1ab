/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abbreviations: which attributes an entry has. A walk over the entries of a unit reads the whole
 * table of the unit. The map of units needs only the first entry, so it searches for that
 * abbreviation alone.
 */
#include <dwarf.h>

#include "symbolize/dwarf-internal.h"

/* A compiler makes some hundred abbreviations for a unit, with up to 20 attributes. */
#define MAX_ABBREVS 65536
#define MAX_SPECS   (1u << 20)
/* Bytes of abbreviations before that of a unit's first entry. */
#define MAX_ROOT_SEARCH 65536

/* Reads one declaration after its code. 0; -ENOEXEC, -EFBIG, -ENOMEM. */
static int abbrev_read(struct cursor *c, const struct dwarf_unit *u, uint64_t code,
		       struct dwarf_abbrevs *ret)
{
	struct dwarf_abbrev a = {.code = code, .first = ret->specs.n};

	a.tag = (uint16_t)dwarf_uleb(c);
	a.children = cursor_u8(c);
	for (;;) {
		uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);
		int64_t constant = form == DW_FORM_implicit_const ? dwarf_sleb(c) : 0;
		struct dwarf_spec *s;
		uint32_t size;

		if (!cursor_ok(c) || form > UINT16_MAX || name > UINT16_MAX)
			return -ENOEXEC;
		if (name == 0 && form == 0)
			break;
		if (ret->specs.n == MAX_SPECS)
			return -EFBIG;
		s = array_push(&ret->specs);
		if (!s)
			return -ENOMEM;
		*s = (struct dwarf_spec){(uint16_t)name, (uint16_t)form, (int32_t)constant};
		size = dwarf_form_size(u, s->form);
		a.fixed = size == DWARF_NONE || a.fixed == DWARF_NONE ? DWARF_NONE : a.fixed + size;
		a.n++;
	}
	if (ret->items.n == MAX_ABBREVS)
		return -EFBIG;
	if (!array_push(&ret->items))
		return -ENOMEM;
	ret->items.items[ret->items.n - 1] = a;
	ret->dense = ret->dense && code == ret->items.n;
	return 0;
}

static int compare_codes(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static void abbrevs_init(struct dwarf_abbrevs *a)
{
	*a = (struct dwarf_abbrevs){
		.items = ARRAY_INIT(MAX_ABBREVS), .specs = ARRAY_INIT(MAX_SPECS), .dense = true};
}

const struct dwarf_abbrevs *dwarf_unit_abbrevs(struct dwarf *d, struct dwarf_unit *u)
{
	struct dwarf_abbrevs *a;
	struct cursor c;
	uint64_t code;
	int r = 0;

	u->used = d->turn;
	if (u->abbrevs)
		return u->abbrevs;
	c = dwarf_section_at(d, DWARF_ABBREV, u->abbrev_offset);
	a = malloc(sizeof(*a));
	if (!a) {
		dwarf_refuse(d, -ENOMEM);
		return NULL;
	}
	abbrevs_init(a);
	while (r == 0 && (code = dwarf_uleb(&c)) != 0) {
		const uint8_t *start = c.cur;

		r = abbrev_read(&c, u, code, a);
		if (!dwarf_work(d, (uint64_t)(c.cur - start)))
			r = -EFBIG;
	}
	if (r < 0 || !cursor_ok(&c)) {
		dwarf_abbrevs_free(a);
		if (r == -ENOMEM)
			dwarf_refuse(d, r);
		return NULL;
	}
	if (!a->dense)
		qsort(a->items.items, a->items.n, sizeof(*a->items.items), compare_codes);
	u->abbrevs = a;
	return dwarf_unit_account(d, u) ? a : NULL;
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *a, uint64_t code)
{
	struct dwarf_abbrev key = {.code = code};

	if (a->dense)
		return code - 1 < a->items.n ? &a->items.items[code - 1] : NULL;
	return bsearch(&key, a->items.items, a->items.n, sizeof(key), compare_codes);
}

/* Skips a declaration after its code; false: damaged. */
static bool abbrev_skip(struct cursor *c)
{
	uint64_t name, form;

	(void)dwarf_uleb(c); /* tag */
	(void)cursor_u8(c);
	do {
		name = dwarf_uleb(c);
		form = dwarf_uleb(c);
		if (form == DW_FORM_implicit_const)
			(void)dwarf_sleb(c);
	} while (cursor_ok(c) && (name || form));
	return cursor_ok(c);
}

int dwarf_abbrev_read_one(struct dwarf *d, const struct dwarf_unit *u, uint64_t code,
			  struct dwarf_abbrevs *ret)
{
	struct cursor c = dwarf_section_at(d, DWARF_ABBREV, u->abbrev_offset);
	const uint8_t *start = c.cur;
	uint64_t have;
	int r = -ENOEXEC;

	if (cursor_left(&c) > MAX_ROOT_SEARCH)
		c.end = c.cur + MAX_ROOT_SEARCH;
	abbrevs_init(ret);
	do {
		have = dwarf_uleb(&c);
		if (have == code)
			r = abbrev_read(&c, u, have, ret);
	} while (have && have != code && abbrev_skip(&c));
	if (!dwarf_work(d, (uint64_t)(c.cur - start)))
		r = -EFBIG;
	if (r < 0) {
		array_deinit(&ret->items);
		array_deinit(&ret->specs);
	}
	return r;
}
