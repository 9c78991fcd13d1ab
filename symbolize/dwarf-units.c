/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The units of a file and the map from addresses to them.
 *
 * The map comes from the first entry of each unit. .debug_aranges would be faster, but compilers
 * omit it (clang) or leave it incomplete (link-time optimisation), and to know which units it lacks
 * we would have to read every header anyway. We read it only for units without ranges in the first
 * entry, and for those of DWARF 2, which has no ranges. A header and a first entry are one page of
 * the file.
 */
#include <dwarf.h>

#include "symbolize/dwarf-internal.h"
#include "util/bisect.h"

#define MAX_UNITS	(1u << 17) /* a browser has some 40,000 */
#define MAX_UNIT_RANGES (1u << 20)
#define MAX_UNIT_BYTES	UINT32_MAX
#define MAX_ARANGES	(1u << 20)
/* The work of a range and of a unit, in bytes of abbreviations that take as long. */
#define RANGE_WORK 4
#define UNIT_WORK  32
/* For all units together. Compilers put the abbreviation of the first entry some 50 abbreviations,
 * or a kilobyte, into the table. */
#define MAX_OPEN_WORK (UINT64_C(128) << 20)

/* ---- Ranges ---- */

static int range_add(struct dwarf *d, uint64_t start, uint64_t end, uint32_t node,
		     dwarf_ranges *ret)
{
	struct dwarf_range *r;

	/* Linkers set the addresses of discarded code to 0, or to the highest addresses. */
	if (start == 0 || start >= end || start < d->code_start || end > d->code_end)
		return 0;
	r = array_push(ret);
	if (!r)
		return ret->n == ret->max ? -EFBIG : -ENOMEM;
	*r = (struct dwarf_range){start, end, node};
	return 0;
}

/* DWARF 2 to 4. */
static int ranges_walk(struct dwarf *d, const struct dwarf_unit *u, uint64_t offset, uint32_t node,
		       dwarf_ranges *ret)
{
	struct cursor c = dwarf_section_at(d, DWARF_RANGES, offset);
	uint64_t base = u->low_pc, max = u->address_size == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t start, end;
	int r = 0;

	while (r == 0) {
		start = dwarf_uint(&c, u->address_size);
		end = dwarf_uint(&c, u->address_size);
		if (!cursor_ok(&c))
			return -ENOEXEC;
		if (start == 0 && end == 0)
			break;
		if (!dwarf_work(d, RANGE_WORK))
			return -EFBIG;
		if (start == max)
			base = end;
		else
			r = range_add(d, base + start, base + end, node, ret);
	}
	return r;
}

static bool address_at(struct dwarf *d, const struct dwarf_unit *u, uint64_t index, uint64_t *ret)
{
	struct dwarf_value v = {.form = DW_FORM_addrx, .u = index};

	return dwarf_value_address(d, u, &v, ret);
}

/* DWARF 5. */
static int rnglist_walk(struct dwarf *d, const struct dwarf_unit *u, uint64_t offset, uint32_t node,
			dwarf_ranges *ret)
{
	struct cursor c = dwarf_section_at(d, DWARF_RNGLISTS, offset);
	uint64_t base = u->low_pc, start, end;
	int r = 0;

	while (r == 0) {
		uint8_t kind = cursor_u8(&c);
		bool ok = true, is_range = true;

		start = end = 0;
		switch (kind) {
		case DW_RLE_end_of_list:
			return cursor_ok(&c) ? 0 : -ENOEXEC;
		case DW_RLE_base_addressx:
			ok = address_at(d, u, dwarf_uleb(&c), &base);
			is_range = false;
			break;
		case DW_RLE_base_address:
			base = dwarf_uint(&c, u->address_size);
			is_range = false;
			break;
		case DW_RLE_startx_endx:
			ok = address_at(d, u, dwarf_uleb(&c), &start);
			ok = address_at(d, u, dwarf_uleb(&c), &end) && ok;
			break;
		case DW_RLE_startx_length:
			ok = address_at(d, u, dwarf_uleb(&c), &start);
			end = start + dwarf_uleb(&c);
			break;
		case DW_RLE_offset_pair:
			start = base + dwarf_uleb(&c);
			end = base + dwarf_uleb(&c);
			break;
		case DW_RLE_start_end:
			start = dwarf_uint(&c, u->address_size);
			end = dwarf_uint(&c, u->address_size);
			break;
		case DW_RLE_start_length:
			start = dwarf_uint(&c, u->address_size);
			end = start + dwarf_uleb(&c);
			break;
		default:
			return -ENOEXEC;
		}
		if (!ok || !cursor_ok(&c))
			return -ENOEXEC;
		if (!dwarf_work(d, RANGE_WORK))
			return -EFBIG;
		if (is_range)
			r = range_add(d, start, end, node, ret);
	}
	return r;
}

static int ranges_of_list(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v,
			  uint32_t node, dwarf_ranges *ret)
{
	uint64_t at = v->u;
	struct cursor c;

	/* Offsets in a split unit are relative to its skeleton's base; those in a skeleton are not.
	 */
	if (u->version < 5)
		return ranges_walk(d, u, at + (d->main ? u->rnglists_base : 0), node, ret);
	if (v->form == DW_FORM_rnglistx) {
		if (at > UINT32_MAX ||
		    __builtin_add_overflow(u->rnglists_base, at * u->offset_size, &at))
			return -ENOEXEC;
		c = dwarf_section_at(d, DWARF_RNGLISTS, at);
		at = u->rnglists_base + dwarf_uint(&c, u->offset_size);
		if (!cursor_ok(&c))
			return -ENOEXEC;
	}
	return rnglist_walk(d, u, at, node, ret);
}

int dwarf_ranges_add(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *low,
		     const struct dwarf_value *high, const struct dwarf_value *ranges,
		     uint32_t node, dwarf_ranges *ret)
{
	uint64_t start, end;

	if (ranges->form)
		return ranges_of_list(d, u, ranges, node, ret);
	if (!low->form || !high->form)
		return 0;
	if (!dwarf_value_address(d, u, low, &start))
		return -ENOEXEC;
	if (!dwarf_value_address(d, u, high, &end))
		end = start + high->u;
	return range_add(d, start, end, node, ret);
}

/* ---- The first entry of a unit ---- */

enum root_attribute {
	ROOT_LOW,
	ROOT_HIGH,
	ROOT_RANGES,
	ROOT_LINES,
	ROOT_LANGUAGE,
	ROOT_STR_OFFSETS,
	ROOT_ADDR,
	ROOT_RNGLISTS,
	ROOT_DIR,
	ROOT_NAME,
	ROOT_DWO_NAME,
	ROOT_DWO_ID,
	ROOT_N
};

/* ROOT_N: an attribute that we do not need. */
static enum root_attribute root_attribute(uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return ROOT_LOW;
	case DW_AT_high_pc:
		return ROOT_HIGH;
	case DW_AT_ranges:
		return ROOT_RANGES;
	case DW_AT_stmt_list:
		return ROOT_LINES;
	case DW_AT_language:
		return ROOT_LANGUAGE;
	case DW_AT_str_offsets_base:
		return ROOT_STR_OFFSETS;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return ROOT_ADDR;
	case DW_AT_rnglists_base:
	case DW_AT_GNU_ranges_base:
		return ROOT_RNGLISTS;
	case DW_AT_comp_dir:
		return ROOT_DIR;
	case DW_AT_name:
		return ROOT_NAME;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return ROOT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return ROOT_DWO_ID;
	default:
		return ROOT_N;
	}
}

static int root_read(struct dwarf *d, const struct dwarf_unit *u, uint16_t *ret_tag,
		     struct dwarf_value values[ROOT_N])
{
	struct cursor c = dwarf_section_at(d, DWARF_INFO, u->entries);
	struct dwarf_abbrevs one;
	uint64_t code = dwarf_uleb(&c);
	int r;

	memset(values, 0, ROOT_N * sizeof(*values));
	r = code ? dwarf_abbrev_read_one(d, u, code, &one) : -ENOEXEC;
	if (r < 0)
		return r;
	*ret_tag = one.items.items[0].tag;
	for (uint32_t i = 0; i < one.specs.n && r == 0; i++) {
		const struct dwarf_spec *s = &one.specs.items[i];
		struct dwarf_value v = {0};

		if (!dwarf_value_read(&c, u, s, &v))
			r = -ENOEXEC;
		if (root_attribute(s->name) != ROOT_N)
			values[root_attribute(s->name)] = v;
	}
	array_deinit(&one.items);
	array_deinit(&one.specs);
	return r;
}

static void root_texts(struct dwarf *d, const struct dwarf_unit *u, enum root_attribute name,
		       const char **ret_dir, const char **ret_name)
{
	struct dwarf_value values[ROOT_N];
	uint16_t tag;

	*ret_dir = *ret_name = NULL;
	if (root_read(d, u, &tag, values) == 0) {
		*ret_dir = dwarf_value_text(d, u, &values[ROOT_DIR]);
		*ret_name = dwarf_value_text(d, u, &values[name]);
	}
	*ret_dir = *ret_dir ? *ret_dir : "";
	*ret_name = *ret_name ? *ret_name : "";
}

void dwarf_unit_names(struct dwarf *d, const struct dwarf_unit *u, const char **ret_dir,
		      const char **ret_name)
{
	root_texts(d, u, ROOT_NAME, ret_dir, ret_name);
}

void dwarf_unit_split_names(struct dwarf *d, const struct dwarf_unit *u, const char **ret_dir,
			    const char **ret_name)
{
	root_texts(d, u, ROOT_DWO_NAME, ret_dir, ret_name);
}

/* Where the tables of a unit begin if it does not say so: after the header of their section, which
 * exists since DWARF 5. A split unit never says so, because it does not share its sections. */
static void bases_assume(const struct dwarf *d, struct dwarf_unit *u)
{
	bool headers = u->version >= 5;

	u->str_offsets_base = headers ? 2u * u->offset_size : 0;
	u->rnglists_base = headers && d->main ? 2u * u->offset_size + 4 : 0;
}

/* Fills the unit from its first entry and adds its ranges. */
static int unit_describe(struct dwarf *d, struct dwarf_unit *u, uint32_t row, dwarf_ranges *ret)
{
	struct dwarf_value values[ROOT_N];
	uint16_t tag;
	int r;

	r = root_read(d, u, &tag, values);
	if (r < 0)
		return r;
	u->is_code = tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit;
	u->language = (uint16_t)values[ROOT_LANGUAGE].u;
	bases_assume(d, u);
	if (values[ROOT_STR_OFFSETS].form)
		u->str_offsets_base = values[ROOT_STR_OFFSETS].u;
	if (values[ROOT_RNGLISTS].form)
		u->rnglists_base = values[ROOT_RNGLISTS].u;
	u->addr_base = values[ROOT_ADDR].u;
	u->is_skeleton = !d->main && values[ROOT_DWO_NAME].form;
	if (values[ROOT_DWO_ID].form)
		u->dwo_id = values[ROOT_DWO_ID].u;
	u->line_offset = values[ROOT_LINES].form ? values[ROOT_LINES].u : UINT64_MAX;
	if (!dwarf_value_address(d, u, &values[ROOT_LOW], &u->low_pc))
		u->low_pc = 0;
	if (!u->is_code)
		return 0;
	return dwarf_ranges_add(d, u, &values[ROOT_LOW], &values[ROOT_HIGH], &values[ROOT_RANGES],
				row, ret);
}

/* ---- All units ---- */

/*
 * Reads the header at the cursor, which moves to the next unit. -ENOEXEC: the rest is unreadable.
 */
static int unit_read(struct cursor *c, struct dwarf_unit *ret, uint8_t *ret_type)
{
	struct dwarf_unit u = {.offset = (uint64_t)(c->cur - c->start)};
	uint64_t n = dwarf_length(c, &u.offset_size);
	struct cursor in;

	u.end = (uint64_t)(c->cur - c->start) + n;
	in = (struct cursor){c->start, c->cur, c->cur + n, !cursor_ok(c)};
	*ret_type = DW_UT_compile;
	u.version = (uint8_t)cursor_u16(&in);
	if (u.version >= 5) {
		*ret_type = cursor_u8(&in);
		u.address_size = cursor_u8(&in);
		u.abbrev_offset = dwarf_uint(&in, u.offset_size);
		if (*ret_type == DW_UT_skeleton || *ret_type == DW_UT_split_compile)
			u.dwo_id = cursor_u64(&in);
	} else {
		u.abbrev_offset = dwarf_uint(&in, u.offset_size);
		u.address_size = cursor_u8(&in);
	}
	u.entries = (uint64_t)(in.cur - in.start);
	(void)cursor_take(c, (size_t)n);
	*ret = u;
	return cursor_ok(c) && n > 0 ? 0 : -ENOEXEC;
}

static bool unit_usable(const struct dwarf_unit *u, uint8_t type)
{
	return u->version >= 2 && u->version <= 5 &&
	       (u->address_size == 4 || u->address_size == 8) &&
	       (type == DW_UT_compile || type == DW_UT_partial || type == DW_UT_skeleton ||
		type == DW_UT_split_compile) &&
	       u->end - u->offset <= MAX_UNIT_BYTES && u->entries < u->end;
}

/* Reads one set of .debug_aranges, for units without ranges of their own. */
static void aranges_of_unit(struct dwarf *d, struct cursor *set, const bool *has_ranges,
			    dwarf_ranges *ret)
{
	uint8_t offset_size, address_size;
	uint64_t n = dwarf_length(set, &offset_size), start, size;
	struct cursor c = {set->cur, set->cur, set->cur + n, !cursor_ok(set)};
	size_t header = offset_size == 8 ? 12 : 4, pad;
	const struct dwarf_unit *u;
	uint32_t row;

	(void)cursor_take(set, (size_t)n);
	(void)cursor_u16(&c); /* version */
	u = dwarf_unit_of_entry(d, dwarf_uint(&c, offset_size));
	address_size = cursor_u8(&c);
	(void)cursor_u8(&c); /* segment size */
	if (!cursor_ok(&c) || !u || (address_size != 4 && address_size != 8))
		return;
	row = (uint32_t)(u - d->units.items);
	if (has_ranges[row] && u->version > 2)
		return;
	pad = -(header + (size_t)(c.cur - c.start)) & (2u * address_size - 1);
	(void)cursor_take(&c, pad);
	for (uint32_t i = 0; i < MAX_ARANGES && cursor_left(&c) > 0; i++) {
		start = dwarf_uint(&c, address_size);
		size = dwarf_uint(&c, address_size);
		if (!cursor_ok(&c) || (start == 0 && size == 0) ||
		    range_add(d, start, start + size, row, ret) < 0)
			return;
	}
}

static int aranges_read(struct dwarf *d, dwarf_ranges *ret)
{
	struct cursor c = dwarf_section(d, DWARF_ARANGES);
	bool *has_ranges = calloc((size_t)d->units.n + 1, sizeof(*has_ranges));

	if (!has_ranges)
		return -ENOMEM;
	for (uint32_t i = 0; i < ret->n; i++)
		has_ranges[ret->items[i].node] = true;
	while (cursor_left(&c) > 0)
		aranges_of_unit(d, &c, has_ranges, ret);
	free(has_ranges);
	return 0;
}

static int units_read(struct dwarf *d, dwarf_ranges *ranges, bool *ret_unknown)
{
	struct cursor c = dwarf_section(d, DWARF_INFO);
	struct dwarf_unit u, *item;
	uint32_t before;
	uint8_t type;
	int r;

	while (cursor_left(&c) > 0 && unit_read(&c, &u, &type) == 0) {
		if (!dwarf_work(d, UNIT_WORK))
			return -EFBIG;
		if (!unit_usable(&u, type))
			continue;
		item = array_push(&d->units);
		if (!item)
			return d->units.n == d->units.max ? -EFBIG : -ENOMEM;
		*item = u;
		before = ranges->n;
		r = unit_describe(d, item, d->units.n - 1, ranges);
		if (r == -EFBIG || r == -ENOMEM)
			return r;
		if (r < 0) {
			d->n_refused++;
			ranges->n = before;
			d->units.n--;
			continue;
		}
		*ret_unknown |= item->is_code && (ranges->n == before || item->version == 2);
	}
	return 0;
}

static int units_open(struct dwarf *d)
{
	dwarf_ranges ranges = ARRAY_INIT(MAX_UNIT_RANGES);
	bool unknown = false;
	int r;

	d->units.max = MAX_UNITS;
	r = units_read(d, &ranges, &unknown);
	if (r == -EFBIG) {
		/* The units read so far are still good. */
		d->n_refused++;
		r = 0;
	}
	if (r == 0 && unknown)
		r = aranges_read(d, &ranges);
	if (r == 0)
		r = dwarf_map_build(&d->map, &ranges);
	dwarf_array_shrink(&d->units);
	array_deinit(&ranges);
	return r;
}

void dwarf_ensure_open(struct dwarf *d)
{
	uint64_t work = d->work;
	int r;

	if (d->opened)
		return;
	d->opened = true;
	d->work = MAX_OPEN_WORK;
	r = units_open(d);
	if (r < 0) {
		dwarf_refuse(d, r);
		array_deinit(&d->map.changes);
	}
	d->work = work;
}

struct dwarf_unit *dwarf_unit_of_address(struct dwarf *d, uint64_t address)
{
	uint32_t row = dwarf_map_find(&d->map, address);

	return row == DWARF_NONE ? NULL : &d->units.items[row];
}

struct dwarf_unit *dwarf_unit_of_id(struct dwarf *d, uint64_t dwo_id)
{
	for (uint32_t i = 0; i < d->units.n; i++)
		if (d->units.items[i].is_code && d->units.items[i].dwo_id == dwo_id)
			return &d->units.items[i];
	return NULL;
}

struct dwarf_unit *dwarf_unit_of_entry(struct dwarf *d, uint64_t offset)
{
	uint32_t n = bisect(d->units.n, i, d->units.items[i].offset <= offset);

	if (n == 0 || offset >= d->units.items[n - 1].end)
		return NULL;
	return &d->units.items[n - 1];
}
