/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ranges that nest or overlap into one sorted array of the places where the innermost range
 * changes. Of two ranges the one that begins later is the inner one; if both begin at the same
 * address, the one that was added later.
 */
#include "symbolize/dwarf-internal.h"
#include "symbolize/sort.h"
#include "util/bisect.h"

struct open_range {
	uint64_t end;
	uint32_t node;
};
typedef ARRAY(struct open_range) open_ranges;

static int change_add(struct dwarf_map *m, uint64_t address, uint32_t node)
{
	struct dwarf_change *last = m->changes.n ? &m->changes.items[m->changes.n - 1] : NULL;
	uint64_t at = address - m->base;

	if (last && last->at == at) {
		last->node = node;
		return 0;
	}
	if (last && last->node == node)
		return 0;
	if (at > UINT32_MAX)
		return -EFBIG;
	last = array_push(&m->changes);
	if (!last)
		return -ENOMEM;
	*last = (struct dwarf_change){(uint32_t)at, node};
	return 0;
}

/* Closes the ranges that end at or before `until`. */
static int ranges_close(struct dwarf_map *m, open_ranges *open, uint64_t until)
{
	int r = 0;

	while (r == 0 && open->n && open->items[open->n - 1].end <= until) {
		uint64_t end = open->items[--open->n].end;

		while (open->n && open->items[open->n - 1].end <= end)
			open->n--;
		r = change_add(m, end, open->n ? open->items[open->n - 1].node : DWARF_NONE);
	}
	return r;
}

static int ranges_flatten(struct dwarf_map *m, const dwarf_ranges *ranges,
			  const struct sort_pair *pairs)
{
	open_ranges open = ARRAY_INIT(UINT32_MAX);
	int r = 0;

	for (uint32_t i = 0; i < ranges->n && r == 0; i++) {
		const struct dwarf_range *range = &ranges->items[pairs[i].value];
		struct open_range *o;

		r = ranges_close(m, &open, range->start);
		if (r == 0)
			r = change_add(m, range->start, range->node);
		o = r == 0 ? array_push(&open) : NULL;
		if (o)
			*o = (struct open_range){range->end, range->node};
		else if (r == 0)
			r = -ENOMEM;
	}
	if (r == 0)
		r = ranges_close(m, &open, UINT64_MAX);
	array_deinit(&open);
	return r;
}

int dwarf_map_build(struct dwarf_map *m, const dwarf_ranges *ranges)
{
	_cleanup_free_ struct sort_pair *pairs = malloc(((size_t)ranges->n + 1) * sizeof(*pairs));
	int r;

	*m = (struct dwarf_map){.changes = ARRAY_INIT(UINT32_MAX)};
	if (!pairs)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranges->n; i++)
		pairs[i] = (struct sort_pair){ranges->items[i].start, i, 0};
	if (sort_pairs(pairs, ranges->n) < 0)
		return -ENOMEM;
	m->base = ranges->n ? pairs[0].key : 0;
	r = ranges_flatten(m, ranges, pairs);
	if (r < 0)
		array_deinit(&m->changes);
	else
		dwarf_array_shrink(&m->changes);
	return r;
}

uint32_t dwarf_map_find(const struct dwarf_map *m, uint64_t address)
{
	uint32_t n;

	if (address < m->base || address - m->base > UINT32_MAX)
		return DWARF_NONE;
	n = bisect(m->changes.n, i, m->changes.items[i].at <= address - m->base);
	return n ? m->changes.items[n - 1].node : DWARF_NONE;
}
