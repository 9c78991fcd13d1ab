/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/native.h"

#include <stdbool.h>

#include "util/cleanup.h"

#define EVERYWHERE UINT32_MAX

struct hiding {
	const struct top_table *sum;
	struct top_table *out;
	uint32_t *path; /* nodes of a stack, innermost first */
	/* By string: the last stack in which it is an interpreter's, or EVERYWHERE. */
	uint32_t *modules;
	uint32_t n, stack; /* of the path; its number */
	bool has_runtime;
};

static const struct top_row *row_of(const struct hiding *h, uint32_t i)
{
	return &h->sum->rows.items[h->sum->nodes.items[h->path[i]].row];
}

static bool is_of(const struct hiding *h, uint32_t i, enum top_code code)
{
	return i < h->n && row_of(h, i)->code == code;
}

static void take_path(struct hiding *h, uint32_t node)
{
	h->n = 0;
	h->stack = node + 1;
	h->has_runtime = false;
	for (; node != TOP_NO_NODE; node = h->sum->nodes.items[node].parent) {
		h->path[h->n++] = node;
		h->has_runtime |= is_of(h, h->n - 1, TOP_CODE_RUNTIME);
	}
}

/* Innermost frames of runtimes are not everywhere where their evaluation is. */
static void mark_interpreters(struct hiding *h, bool everywhere)
{
	for (uint32_t i = 1; i < h->n; i++) {
		uint32_t *mark = &h->modules[row_of(h, i)->module];

		if (!is_of(h, i, TOP_CODE_FILE) || !is_of(h, i - 1, TOP_CODE_RUNTIME) ||
		    *mark == EVERYWHERE)
			continue;
		if (!everywhere)
			*mark = h->stack;
		else if (i > 1 &&
			 (is_of(h, i - 2, TOP_CODE_FILE) || is_of(h, i - 2, TOP_CODE_RUNTIME)))
			*mark = EVERYWHERE;
	}
}

/* Compiled code with a runtime's next to it. */
static bool is_compiled(const struct hiding *h, uint32_t i)
{
	uint32_t inner = i, outer = i;

	while (inner > 0 && is_of(h, inner, TOP_CODE_COMPILED))
		inner--;
	while (is_of(h, outer, TOP_CODE_COMPILED))
		outer++;
	return is_of(h, i, TOP_CODE_COMPILED) &&
	       (is_of(h, inner, TOP_CODE_RUNTIME) || is_of(h, outer, TOP_CODE_RUNTIME));
}

static bool is_hidden(const struct hiding *h, uint32_t i)
{
	uint32_t mark = h->modules[row_of(h, i)->module];

	if (!h->has_runtime)
		return false;
	return is_compiled(h, i) ||
	       (is_of(h, i, TOP_CODE_FILE) && (mark == h->stack || mark == EVERYWHERE));
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
	struct hiding h = {.sum = sum, .out = out, .path = path, .modules = modules};

	top_table_clear(out);
	for (uint32_t pass = 0; path && modules && pass < 2; pass++) {
		for (uint32_t i = 0; i < sum->nodes.n; i++) {
			if (sum->nodes.items[i].self == 0)
				continue;
			take_path(&h, i);
			mark_interpreters(&h, pass == 0);
			if (pass == 1)
				add_path(&h, sum->nodes.items[i].self);
		}
	}
	top_table_copy_facts(out, sum);
}
