/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/native.h"

#include <stdbool.h>

#include "util/cleanup.h"

struct hiding {
	const struct top_table *sum;
	struct top_table *out;
	uint32_t *path;	   /* nodes of a stack, innermost first */
	uint32_t *modules; /* by string: the last stack in which it is an interpreter's */
	uint32_t n, stack; /* of the path; its number */
};

static const struct top_row *row_of(const struct hiding *h, uint32_t i)
{
	return &h->sum->rows.items[h->sum->nodes.items[h->path[i]].row];
}

static void take_path(struct hiding *h, uint32_t node)
{
	h->n = 0;
	h->stack = node + 1;
	for (; node != TOP_NO_NODE; node = h->sum->nodes.items[node].parent)
		h->path[h->n++] = node;
	for (uint32_t i = 1; i < h->n; i++) {
		if (row_of(h, i)->code == TOP_CODE_FILE &&
		    row_of(h, i - 1)->code == TOP_CODE_RUNTIME)
			h->modules[row_of(h, i)->module] = h->stack;
	}
}

static bool is_hidden(const struct hiding *h, uint32_t i)
{
	const struct top_row *r = row_of(h, i);

	return r->code == TOP_CODE_FILE && h->modules[r->module] == h->stack;
}

/* The stack's weight, at the functions of the path that stay, from the process on. */
static void add_path(struct hiding *h, uint64_t weight)
{
	struct top_table *out = h->out;
	struct top_row *row = NULL;
	uint32_t node = TOP_NO_NODE;

	for (uint32_t i = h->n; i-- > 0;) {
		if (is_hidden(h, i))
			continue;
		row = top_table_copy_row(out, h->sum, h->sum->nodes.items[h->path[i]].row);
		if (!row)
			return;
		node = top_table_node(out, node, (uint32_t)(row - out->rows.items));
		if (node == TOP_NO_NODE)
			return;
		out->nodes.items[node].total += weight;
		/* A process is no function. */
		if (row->function != STRID_EMPTY && row->mark != h->stack)
			row->total += weight;
		row->mark = h->stack;
	}
	if (row && row->function != STRID_EMPTY)
		row->self += weight;
	if (node != TOP_NO_NODE)
		out->nodes.items[node].self += weight;
}

void top_hide_native(const struct top_table *sum, struct top_table *out)
{
	_cleanup_free_ uint32_t *path = calloc((size_t)sum->nodes.n + 1, sizeof(*path));
	_cleanup_free_ uint32_t *modules = calloc((size_t)sum->strings.n + 1, sizeof(*modules));
	struct hiding h = {sum, out, path, modules, 0, 0};

	top_table_clear(out);
	for (uint32_t i = 0; path && modules && i < sum->nodes.n; i++) {
		if (sum->nodes.items[i].self == 0)
			continue;
		take_path(&h, i);
		add_path(&h, sum->nodes.items[i].self);
	}
	top_table_copy_facts(out, sum);
}
