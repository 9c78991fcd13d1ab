/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of callers and callees. Each is built from the stacks that contain its function: a hash of
 * (parent, place) finds a child, down to MAX_DEPTH.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/render/report-internal.h"

#define MAX_DEPTH 32

static struct report_node *child_of(struct report *r, uint32_t parent, uint32_t place,
				    uint32_t *ret_row)
{
	uint64_t hash = hash_combine(hash_u64(parent), place);
	uint32_t slot = hash_index_first(&r->node_index, hash), row;
	struct report_node *n;

	while ((row = hash_index_row(&r->node_index, slot)) != HASH_INDEX_NONE) {
		n = &r->nodes.items[row];
		if (n->parent == parent && n->place == place) {
			*ret_row = row;
			return n;
		}
		slot = hash_index_next(&r->node_index, slot);
	}
	n = array_push(&r->nodes);
	row = r->nodes.n - 1;
	if (!n || hash_index_add(&r->node_index, hash, row) < 0)
		return NULL;
	*n = (struct report_node){
		.place = place, .parent = parent, .next = r->nodes.items[parent].first_child};
	r->nodes.items[parent].first_child = *ret_row = row;
	return n;
}

struct path {
	ARRAY(uint32_t) places; /* leaf first */
};

static int path_add(struct report *r, void *ctx, uint32_t place, uint32_t at)
{
	struct path *path = ctx;
	uint32_t *item = array_push(&path->places);

	if (!item)
		return -ENOMEM;
	*item = place;
	return 0;
}

/* From the outermost match down to the leaf, or from the innermost one up to the root. */
static int tree_add(struct report *r, const struct path *path, const struct aggregate_row *row,
		    bool callers)
{
	uint32_t match = UINT32_MAX, node = 0, depth = 0;

	for (uint32_t i = 0; i < path->places.n; i++) {
		if (!report_place_matches(r, path->places.items[i]))
			continue;
		match = i;
		if (callers)
			break;
	}
	if (match == UINT32_MAX)
		return 0;
	r->nodes.items[0].value = profile_sum(r->nodes.items[0].value, row->value);
	for (uint32_t i = match; i < path->places.n && depth < MAX_DEPTH; depth++) {
		struct report_node *n = child_of(r, node, path->places.items[i], &node);

		if (!n)
			return -ENOMEM;
		n->value = profile_sum(n->value, row->value);
		n->squares += row->squares;
		i += callers ? 1u : UINT32_MAX; /* past the leaf it wraps and ends */
	}
	return 0;
}

static int tree_build(struct report *r, bool callers)
{
	struct path path = {.places = ARRAY_INIT(UINT32_MAX / 2)};
	struct report_node *root;
	int e = 0;

	r->nodes.max = UINT32_MAX / 2;
	array_clear(&r->nodes);
	hash_index_clear(&r->node_index);
	root = array_push(&r->nodes);
	if (!root)
		return -ENOMEM;
	*root = (struct report_node){0};
	for (uint32_t i = 0; i < r->a.rows.n && e == 0; i++) {
		const struct aggregate_row *row = &r->a.rows.items[i];

		if (!report_row_wanted(r, row) ||
		    (r->only && report_owner(r, row->thread) != r->only->owner))
			continue;
		array_clear(&path.places);
		e = report_each_place(r, row->stack, path_add, &path);
		if (e == 0)
			e = tree_add(r, &path, row, callers);
	}
	array_deinit(&path.places);
	return e;
}

/* The child after last (0: the first one), the largest first, equal ones in the order of their
 * rows; 0: no more. */
static uint32_t next_child(const struct report *r, uint32_t node, uint32_t last)
{
	int64_t limit = last ? profile_size(r->nodes.items[last].value) : INT64_MAX;
	uint32_t best = 0;

	for (uint32_t c = r->nodes.items[node].first_child; c; c = r->nodes.items[c].next) {
		int64_t v = profile_size(r->nodes.items[c].value);
		int64_t most = best ? profile_size(r->nodes.items[best].value) : 0;

		if ((v < limit || (v == limit && c > last)) &&
		    (!best || v > most || (v == most && c < best)))
			best = c;
	}
	return best;
}

/* A chain of calls without branches is one column: indent grows where the value changes. */
static void tree_print(const struct report *r, struct table *t, uint32_t parent, uint32_t depth,
		       uint32_t indent)
{
	uint32_t child = 0;

	while (depth < MAX_DEPTH && (child = next_child(r, parent, child)) != 0) {
		const struct report_node *n = &r->nodes.items[child];
		struct table_estimate e = report_estimate(r, n->value, n->squares);
		bool same = parent && n->value == r->nodes.items[parent].value;
		uint32_t at = parent && !same ? indent + 1 : indent;
		const char *text;
		size_t length = report_symbol_of(r, n->place, &text);

		if (fabs(e.share) < r->o->min_percent)
			return;
		table_tree_line(t, e, t->csv ? depth : at, same, text, length);
		tree_print(r, t, child, depth + 1, at);
	}
}

/* what: names the functions of the tree. */
static int print_tree(struct report *r, struct table *t, bool callers, const char *what)
{
	int e = tree_build(r, callers);

	if (e < 0)
		return e;
	table_heading(t,
		      callers ? "Callers of %s: each is called by those below it"
			      : "Callees of %s: each calls those below it",
		      what);
	if (r->nodes.n == 1)
		table_note(t, "no function matches");
	else
		tree_print(r, t, 0, 0, 0);
	return 0;
}

int report_print_trees(struct report *r, struct table *t, const char *what)
{
	int e = 0;

	if (r->o->callers)
		e = print_tree(r, t, true, what);
	if (e == 0 && r->o->callees)
		e = print_tree(r, t, false, what);
	return e;
}
