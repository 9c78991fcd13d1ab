/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each unique frame becomes symbols once (rows of places, outermost first), each unique (thread,
 * stack) is followed once, and a hash of (parent, symbol) finds a child. Nodes are only appended,
 * so totals take one pass from the last row to the first, and nothing recurses, however deep the
 * stacks are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/calltree.h"
#include "src/render/first-frame.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/text.h"

#define MAX_NAME_BYTES (UINT64_C(1) << 30)

struct builder {
	struct calltree *t;
	const struct profile *p;
	unsigned int flags;
	struct hash_index symbol_index, node_index;
	uint32_t *first_place;	    /* by frame: row of places + 1, 0: not seen yet */
	uint32_t *process_place;    /* by process: row of places + 1 */
	ARRAY(uint32_t) last_child; /* by node: the child that the last path took */
	ARRAY(uint32_t) last_path;  /* by symbol: the last path that counted it + 1 */
	uint32_t path;
};

static uint32_t find_symbol(struct builder *b, strid name, strid module, enum frame_kind kind)
{
	bool any = b->flags & CALLTREE_ANY_KIND && kind != FRAME_PROCESS;
	uint64_t hash = hash_combine((uint64_t)name << 32 | module, any ? FRAME_N_KINDS : kind);
	uint32_t slot = hash_index_first(&b->symbol_index, hash), row;
	struct call_symbol *s;

	while ((row = hash_index_row(&b->symbol_index, slot)) != HASH_INDEX_NONE) {
		s = &b->t->symbols.items[row];
		if (s->name == name && s->module == module &&
		    (any ? s->kind != FRAME_PROCESS : s->kind == kind))
			return row;
		slot = hash_index_next(&b->symbol_index, slot);
	}
	s = array_push(&b->t->symbols);
	if (!s || !array_push(&b->last_path) ||
	    hash_index_add(&b->symbol_index, hash, b->t->symbols.n - 1) < 0)
		return CALLTREE_NONE;
	*s = (struct call_symbol){.name = name, .module = module, .kind = kind};
	return b->t->symbols.n - 1;
}

/* Takes a clean name; module is cleaned here. */
static uint32_t put_symbol(struct builder *b, char *name, const char *module, enum frame_kind kind)
{
	static const char *const suffix[FRAME_N_KINDS] = {
		[FRAME_KERNEL] = "_[k]", [FRAME_JIT] = "_[j]", [FRAME_INLINED] = "_[i]"};
	char text[FRAME_MAX_NAME + 8];
	strid name_id, module_id = STRID_EMPTY;

	if (b->flags & CALLTREE_FOLDED) {
		for (char *c = name; (c = strchr(c, ';'));)
			*c = ':';
		(void)snprintf(text, sizeof(text), "%s%s", name, suffix[kind] ? suffix[kind] : "");
		name = text;
	}
	name_id = strtab_put(&b->t->names, name);
	if (b->flags & CALLTREE_MODULES) {
		char clean[FRAME_MAX_NAME];

		(void)text_clean(clean, sizeof(clean), module, SIZE_MAX);
		module_id = strtab_put(&b->t->names, clean);
	}
	return find_symbol(b, name_id, module_id, kind);
}

static int push_place(struct builder *b, uint32_t symbol, uint32_t frame, uint32_t line)
{
	struct call_place *place = symbol == CALLTREE_NONE ? NULL : array_push(&b->t->places);

	if (!place)
		return -ENOMEM;
	*place = (struct call_place){symbol, frame, line};
	return 0;
}

static void put_source(struct builder *b, uint32_t symbol, const struct profile_function *f)
{
	struct call_symbol *s = &b->t->symbols.items[symbol];
	char clean[FRAME_MAX_NAME];

	if (!(b->flags & CALLTREE_MODULES) || s->file != STRID_EMPTY ||
	    !*profile_text(b->p, f->file))
		return;
	(void)text_clean(clean, sizeof(clean), profile_text(b->p, f->file), SIZE_MAX);
	s->file = strtab_put(&b->t->names, clean);
	s->line = f->start_line;
}

/* Adds the place of a frame's line; line NULL: the frame has no name. */
static int push_frame_place(struct builder *b, uint32_t frame, const struct profile_line *line,
			    enum frame_kind kind)
{
	uint32_t function = line ? line->function : PROFILE_NONE, symbol;
	uint32_t module = b->p->frames.items[frame].module;
	char name[FRAME_MAX_NAME];

	if (line)
		(void)frame_function_name(b->p, function, name, sizeof(name));
	else
		(void)frame_fallback_name(b->p, frame, name, sizeof(name));
	symbol = put_symbol(b, name, frame_function_module(b->p, module, function), kind);
	if (symbol == CALLTREE_NONE)
		return -ENOMEM;
	if (line)
		put_source(b, symbol, &b->p->functions.items[function]);
	return push_place(b, symbol, frame, line ? line->line : 0);
}

/* The places of a frame, outermost first; there is always at least one. */
static int frame_places(struct builder *b, uint32_t frame, uint32_t *ret, uint32_t *ret_n)
{
	const struct profile_frame *f = &b->p->frames.items[frame];
	uint32_t n = f->n_lines ? f->n_lines : 1;

	if (!b->first_place[frame]) {
		enum frame_kind kind = frame_kind(b->p, frame);
		uint32_t first = b->t->places.n;
		int r = f->n_lines ? 0 : push_frame_place(b, frame, NULL, kind);

		for (uint32_t i = f->n_lines; i-- > 0 && r == 0;) {
			bool inlined = i + 1 < f->n_lines && kind == FRAME_NATIVE &&
				       b->flags & CALLTREE_INLINED;

			r = push_frame_place(b, frame, &b->p->lines.items[f->first_line + i],
					     inlined ? FRAME_INLINED : kind);
		}
		if (r < 0)
			return r;
		b->first_place[frame] = first + 1;
	}
	*ret = b->first_place[frame] - 1;
	*ret_n = n;
	return 0;
}

static int process_place(struct builder *b, uint32_t process, uint32_t *ret)
{
	if (!b->process_place[process]) {
		char name[FRAME_MAX_NAME], owner[256];
		uint32_t symbol;

		(void)frame_process_name(b->p, process, name, sizeof(name));
		(void)frame_process_owner(b->p, process, owner, sizeof(owner));
		symbol = put_symbol(b, name, owner, FRAME_PROCESS);
		if (symbol == CALLTREE_NONE)
			return -ENOMEM;
		b->t->symbols.items[symbol].n_processes++;
		if (push_place(b, symbol, PROFILE_NONE, 0) < 0)
			return -ENOMEM;
		b->process_place[process] = b->t->places.n;
	}
	*ret = b->process_place[process] - 1;
	return 0;
}

static int push_node(struct builder *b, uint32_t parent, uint32_t symbol, uint32_t place)
{
	struct call_node *n = array_push(&b->t->nodes);

	if (!n || !array_push(&b->last_child))
		return -ENOMEM;
	*n = (struct call_node){symbol, place, parent, CALLTREE_NONE, CALLTREE_NONE, 0, 0};
	return 0;
}

/* Moves *node to its child for the symbol of place; 1: the tree is full, *node stays. */
static int descend(struct builder *b, uint32_t place, uint32_t *node)
{
	uint32_t symbol = b->t->places.items[place].symbol;
	uint32_t slot, row = b->last_child.items[*node];
	uint64_t hash;

	/* Most paths begin like the one before. */
	if (row && b->t->nodes.items[row].symbol == symbol) {
		*node = row;
		return 0;
	}
	hash = hash_u64((uint64_t)*node << 32 | symbol);
	slot = hash_index_first(&b->node_index, hash);
	while ((row = hash_index_row(&b->node_index, slot)) != HASH_INDEX_NONE) {
		const struct call_node *n = &b->t->nodes.items[row];

		if (n->parent == *node && n->symbol == symbol) {
			b->last_child.items[*node] = row;
			*node = row;
			return 0;
		}
		slot = hash_index_next(&b->node_index, slot);
	}
	if (b->t->nodes.n == b->t->nodes.max)
		return 1;
	if (push_node(b, *node, symbol, place) < 0 ||
	    hash_index_add(&b->node_index, hash, b->t->nodes.n - 1) < 0)
		return -ENOMEM;
	b->last_child.items[*node] = b->t->nodes.n - 1;
	*node = b->t->nodes.n - 1;
	return 0;
}

static void add_value(int64_t *sum, int64_t value)
{
	*sum = profile_sum(*sum, value);
}

static void count_symbol(struct builder *b, uint32_t symbol, const struct aggregate_row *row)
{
	if (b->last_path.items[symbol] == b->path)
		return;
	b->last_path.items[symbol] = b->path;
	add_value(&b->t->symbols.items[symbol].total, row->value);
	b->t->symbols.items[symbol].total_squares += row->squares;
}

static int add_path(struct builder *b, const struct aggregate_row *row, uint32_t *ret_node)
{
	const struct profile *p = b->p;
	uint32_t n_frames, node = 0, place, symbol;
	const uint32_t *frames = profile_stack_frames(p, row->stack, &n_frames);
	uint32_t n_left_out = b->flags & CALLTREE_CALLERS ? first_frame(p, row->stack) : 0;
	bool full = false;
	int r;

	b->path++;
	r = process_place(b, p->threads.items[row->thread].process, &place);
	if (r == 0)
		r = descend(b, place, &node);
	if (r < 0)
		return r;
	symbol = b->t->places.items[place].symbol;
	full = r > 0;
	count_symbol(b, symbol, row);
	for (uint32_t i = n_frames; i-- > n_left_out;) {
		uint32_t n;

		r = frame_places(b, frames[i], &place, &n);
		for (uint32_t j = 0; r >= 0 && j < n; j++) {
			symbol = b->t->places.items[place + j].symbol;
			count_symbol(b, symbol, row);
			r = full ? 1 : descend(b, place + j, &node);
			full = r > 0;
		}
		if (r < 0)
			return r;
	}
	add_value(&b->t->symbols.items[symbol].self, row->value);
	b->t->symbols.items[symbol].self_squares += row->squares;
	b->t->squares += row->squares;
	add_value(&b->t->nodes.items[node].self, row->value);
	if (full)
		add_value(&b->t->n_cut, row->value);
	*ret_node = node;
	return 0;
}

static int compare_names(const void *a, const void *b, void *ctx)
{
	const struct calltree *t = ctx;
	const struct call_symbol *x = &t->symbols.items[*(const uint32_t *)a];
	const struct call_symbol *y = &t->symbols.items[*(const uint32_t *)b];
	int r = strcmp(strtab_get(&t->names, x->name), strtab_get(&t->names, y->name));

	if (r == 0)
		r = strcmp(strtab_get(&t->names, x->module), strtab_get(&t->names, y->module));
	return r ? r : (x->kind > y->kind) - (x->kind < y->kind);
}

struct sibling {
	uint32_t parent, rank, node;
};

static int compare_siblings(const void *a, const void *b)
{
	const struct sibling *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Totals and the sorted lists of children. Names are compared once for each symbol, not node. */
static int finish(struct calltree *t)
{
	_cleanup_free_ uint32_t *order = malloc(((size_t)t->symbols.n + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *rank = malloc(((size_t)t->symbols.n + 1) * sizeof(*rank));
	_cleanup_free_ struct sibling *siblings = malloc((size_t)t->nodes.n * sizeof(*siblings));

	if (!order || !rank || !siblings)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->symbols.n; i++)
		order[i] = i;
	qsort_r(order, t->symbols.n, sizeof(*order), compare_names, t);
	for (uint32_t i = 0; i < t->symbols.n; i++)
		rank[order[i]] = i;

	for (uint32_t i = t->nodes.n; i-- > 0;) {
		struct call_node *n = &t->nodes.items[i];

		add_value(&n->total, n->self);
		if (i > 0) {
			add_value(&t->nodes.items[n->parent].total, n->total);
			siblings[i - 1] = (struct sibling){n->parent, rank[n->symbol], i};
		}
	}
	qsort(siblings, t->nodes.n - 1, sizeof(*siblings), compare_siblings);
	for (uint32_t i = t->nodes.n - 1; i-- > 0;) {
		struct call_node *parent = &t->nodes.items[siblings[i].parent];

		t->nodes.items[siblings[i].node].next = parent->first_child;
		parent->first_child = siblings[i].node;
	}
	return 0;
}

int calltree_build(struct calltree *t, const struct profile *p, unsigned int flags)
{
	struct builder b = {.t = t,
			    .p = p,
			    .flags = flags,
			    .last_path = ARRAY_INIT(UINT32_MAX),
			    .last_child = ARRAY_INIT(UINT32_MAX)};
	_cleanup_free_ uint32_t *row_nodes = NULL, *sample_rows = NULL;
	struct aggregate a;
	int r;

	*t = (struct calltree){.symbols = ARRAY_INIT(UINT32_MAX),
			       .places = ARRAY_INIT(UINT32_MAX),
			       .nodes = ARRAY_INIT(CALLTREE_MAX_NODES)};
	strtab_init(&t->names, MAX_NAME_BYTES);
	b.first_place = calloc((size_t)p->frames.n + 1, sizeof(*b.first_place));
	b.process_place = calloc((size_t)p->processes.n + 1, sizeof(*b.process_place));
	if (flags & CALLTREE_SAMPLES)
		sample_rows = calloc((size_t)p->types[0].samples.n + 1, sizeof(*sample_rows));
	r = aggregate_build(&a, p, sample_rows);
	t->sampling = a.sampling;
	row_nodes = calloc((size_t)a.rows.n + 1, sizeof(*row_nodes));
	if (r == 0 && (!b.first_place || !b.process_place || !row_nodes ||
		       (flags & CALLTREE_SAMPLES && !sample_rows)))
		r = -ENOMEM;
	if (r == 0)
		r = push_node(&b, CALLTREE_NONE, CALLTREE_NONE, CALLTREE_NONE);
	for (uint32_t i = 0; i < a.rows.n && r == 0; i++)
		r = add_path(&b, &a.rows.items[i], &row_nodes[i]);
	if (r == 0)
		r = finish(t);
	for (uint32_t i = 0; sample_rows && i < p->types[0].samples.n && r == 0; i++)
		sample_rows[i] = row_nodes[sample_rows[i]];
	t->sample_nodes = TAKE_PTR(sample_rows);

	aggregate_deinit(&a);
	free(b.first_place);
	free(b.process_place);
	array_deinit(&b.last_path);
	array_deinit(&b.last_child);
	hash_index_deinit(&b.symbol_index);
	hash_index_deinit(&b.node_index);
	return r;
}

void calltree_deinit(struct calltree *t)
{
	strtab_deinit(&t->names);
	array_deinit(&t->symbols);
	array_deinit(&t->places);
	array_deinit(&t->nodes);
	free(t->sample_nodes);
	t->sample_nodes = NULL;
}

uint32_t calltree_next(const struct calltree *t, uint32_t n, uint32_t *depth)
{
	if (t->nodes.items[n].first_child != CALLTREE_NONE) {
		++*depth;
		return t->nodes.items[n].first_child;
	}
	while (n != CALLTREE_NONE && t->nodes.items[n].next == CALLTREE_NONE) {
		n = t->nodes.items[n].parent;
		--*depth;
	}
	if (n == CALLTREE_NONE) {
		*depth = 0;
		return n;
	}
	return t->nodes.items[n].next;
}
