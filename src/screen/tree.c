/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each refresh makes a new sum with new node numbers. Only a path stays the same: a hash of the
 * texts from the process down to the node. Hashes are computed only for shown nodes.
 */
#include "src/screen/tree.h"

#include <string.h>

#include "util/bisect.h"
#include "util/cleanup.h"

#define ALL_OPEN_SHARE 100 /* nodes with at least a hundredth of all samples are shown */

struct tree {
	const struct top_view *v;
	const struct top_table *sum;
	struct top_table *out;
	uint32_t *first, *next; /* child by node, [n]: the processes; sibling; TOP_NO_NODE */
	uint8_t *keep;		/* by node: KEEP_* */
	uint32_t *siblings;	/* while they are sorted */
};

enum { KEEP_BELOW = 1, /* it or a caller of it matches the filter */ KEEP_ABOVE = 2 };

static const struct top_row *row_of(const struct top_table *sum, uint32_t node)
{
	return &sum->rows.items[sum->nodes.items[node].row];
}

static uint64_t hash_text(const struct top_table *t, strid id, uint64_t h)
{
	const char *text = strtab_get(&t->strings, id);

	return hash_bytes(text, strlen(text), h);
}

/* 0 names nothing. */
static uint64_t path_of(const struct top_table *sum, uint32_t node, uint64_t parent)
{
	const struct top_row *r = row_of(sum, node);
	uint64_t h;

	if (sum->nodes.items[node].parent == TOP_NO_NODE)
		h = hash_text(sum, r->owner, hash_text(sum, r->comm, r->pid));
	else
		h = hash_text(sum, r->module, hash_text(sum, r->function, parent));
	return h ? h : 1;
}

/* ---- What is open ---- */

static uint32_t find_open(const struct top_view *v, uint64_t path)
{
	return bisect(v->open.n, i, v->open.items[i] < path);
}

static bool is_open(const struct top_view *v, uint64_t path)
{
	uint32_t at = find_open(v, path);

	return at < v->open.n && v->open.items[at] == path;
}

void top_tree_set_open(struct top_view *v, uint64_t path, bool open)
{
	uint32_t at = find_open(v, path);

	if (is_open(v, path) == open)
		return;
	if (!open) {
		v->open.n--;
		memmove(&v->open.items[at], &v->open.items[at + 1],
			(v->open.n - at) * sizeof(*v->open.items));
		return;
	}
	if (v->open.n == v->open.max)
		array_clear(&v->open); /* most likely all of processes that are long gone */
	at = find_open(v, path);
	if (!array_push(&v->open))
		return;
	memmove(&v->open.items[at + 1], &v->open.items[at],
		(v->open.n - 1 - at) * sizeof(*v->open.items));
	v->open.items[at] = path;
}

/* ---- The tree ---- */

static void link_children(struct tree *t)
{
	uint32_t n = t->sum->nodes.n;

	for (uint32_t i = 0; i <= n; i++)
		t->first[i] = TOP_NO_NODE;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t parent = t->sum->nodes.items[i].parent;

		parent = parent == TOP_NO_NODE ? n : parent;
		t->next[i] = t->first[parent];
		t->first[parent] = i;
	}
}

static bool node_matches(const struct tree *t, uint32_t node)
{
	const struct strtab *s = &t->sum->strings;
	const struct top_row *r = row_of(t->sum, node);
	bool process = t->sum->nodes.items[node].parent == TOP_NO_NODE;
	const struct top_key k = {
		.function = strtab_get(s, r->function),
		.module = strtab_get(s, r->module),
		.comm = process ? strtab_get(s, r->comm) : "",
		.owner = process ? strtab_get(s, r->owner) : "",
		.pid = process ? r->pid : 0,
	};

	return top_view_matches(t->v, &k);
}

/* A parent's number is smaller than its children's. */
static void find_matches(struct tree *t)
{
	const struct top_node *nodes = t->sum->nodes.items;

	for (uint32_t i = 0; i < t->sum->nodes.n; i++) {
		bool below =
			nodes[i].parent != TOP_NO_NODE && (t->keep[nodes[i].parent] & KEEP_BELOW);

		t->keep[i] = below || node_matches(t, i) ? KEEP_BELOW : 0;
	}
	if (!t->v->filter[0])
		return;
	for (uint32_t i = t->sum->nodes.n; i-- > 0;) {
		if (t->keep[i] && nodes[i].parent != TOP_NO_NODE &&
		    !(t->keep[nodes[i].parent] & KEEP_BELOW))
			t->keep[nodes[i].parent] |= KEEP_ABOVE;
	}
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct top_table *sum = ctx;
	const struct top_node *x = &sum->nodes.items[*(const uint32_t *)a],
			      *y = &sum->nodes.items[*(const uint32_t *)b];

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x < y ? -1 : x > y;
}

static bool shown(const struct tree *t, uint32_t node)
{
	const struct top_node *n = &t->sum->nodes.items[node];

	if (!t->keep[node] || (t->v->all_open && n->total * ALL_OPEN_SHARE < t->sum->counts.whole))
		return false;
	return n->parent != TOP_NO_NODE || top_view_wants(t->v, t->sum, row_of(t->sum, node));
}

/* Sorts the shown children of a node, largest first; returns their number. */
static uint32_t sort_children(const struct tree *t, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = t->first[node]; i != TOP_NO_NODE; i = t->next[i]) {
		if (shown(t, i))
			t->siblings[n++] = i;
	}
	qsort_r(t->siblings, n, sizeof(*t->siblings), by_total, (void *)t->sum);
	return n;
}

static strid copy(const struct tree *t, strid id)
{
	return strtab_put(&t->out->strings, strtab_get(&t->sum->strings, id));
}

/* Adds the row of a node. Is it open? false also if there is no room. */
static bool put_node(const struct tree *t, uint32_t node, uint64_t path, uint32_t depth)
{
	const struct top_node *n = &t->sum->nodes.items[node];
	const struct top_row *from = row_of(t->sum, node);
	struct top_row *r = array_push(&t->out->rows);
	bool leaf = true;

	if (!r) {
		t->out->n_refused++;
		return false;
	}
	for (uint32_t i = t->first[node]; i != TOP_NO_NODE && leaf; i = t->next[i])
		leaf = !shown(t, i);
	r->function = copy(t, from->function);
	r->module = copy(t, from->module);
	r->comm = copy(t, from->comm);
	r->owner = copy(t, from->owner);
	r->pid = from->pid;
	r->self = n->self;
	r->total = n->total;
	r->path = path;
	r->depth = depth;
	r->fold = leaf ? TOP_LEAF
		  : t->v->all_open || (t->keep[node] & KEEP_ABOVE) || is_open(t->v, path)
			  ? TOP_OPEN
			  : TOP_CLOSED;
	return r->fold == TOP_OPEN;
}

struct tree_waiting {
	uint32_t node, depth;
	uint64_t parent; /* its path */
};

/* In preorder: a node waits, with the path of its parent, until the nodes before it are done. */
static void put_all(const struct tree *t)
{
	ARRAY(struct tree_waiting) stack = ARRAY_INIT(TOP_MAX_NODES);
	struct tree_waiting *w, at = {.node = t->sum->nodes.n};
	uint64_t path = 0;
	bool open = true;

	for (;;) {
		uint32_t n = open ? sort_children(t, at.node) : 0;

		while (n-- > 0 && (w = array_push(&stack)) != NULL)
			*w = (struct tree_waiting){t->siblings[n], at.depth, path};
		if (stack.n == 0 || t->out->rows.n == t->out->rows.max)
			break;
		at = stack.items[--stack.n];
		path = path_of(t->sum, at.node, at.parent);
		open = put_node(t, at.node, path, at.depth++);
	}
	array_deinit(&stack);
}

void top_tree_make(const struct top_view *v, const struct top_table *sum, struct top_table *out)
{
	size_t n = (size_t)sum->nodes.n + 1;
	_cleanup_free_ uint32_t *first = calloc(n, sizeof(*first));
	_cleanup_free_ uint32_t *next = calloc(n, sizeof(*next));
	_cleanup_free_ uint32_t *siblings = calloc(n, sizeof(*siblings));
	_cleanup_free_ uint8_t *keep = calloc(n, 1);
	struct tree t = {v, sum, out, first, next, keep, siblings};

	if (!first || !next || !siblings || !keep) {
		out->n_refused += sum->nodes.n;
		return;
	}
	link_children(&t);
	find_matches(&t);
	put_all(&t);
}

void top_tree_open_chain(struct top_view *v, const struct top_table *sum, uint64_t path)
{
	uint32_t n = sum->nodes.n;
	_cleanup_free_ uint64_t *paths = calloc((size_t)n + 1, sizeof(*paths));

	top_tree_set_open(v, path, true);
	/* At most one child has most of its parent's samples. */
	for (uint32_t i = 0; paths && i < n; i++) {
		const struct top_node *node = &sum->nodes.items[i];
		bool process = node->parent == TOP_NO_NODE;

		paths[i] = path_of(sum, i, process ? 0 : paths[node->parent]);
		if (!process && paths[node->parent] == path &&
		    node->total * 4 > sum->nodes.items[node->parent].total * 3) {
			top_tree_set_open(v, paths[i], true);
			path = paths[i];
		}
	}
}
