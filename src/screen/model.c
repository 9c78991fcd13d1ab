/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each interval has its own strings, and each refresh makes a new sum: nothing is removed from a
 * table, so a view that runs for weeks holds no more than its window.
 */
#include "src/screen/model.h"

#include <errno.h>

#include "util/cleanup.h"

void top_table_clear(struct top_table *t)
{
	strtab_clear(&t->strings);
	array_clear(&t->rows);
	hash_index_clear(&t->index);
	array_clear(&t->nodes);
	hash_index_clear(&t->node_index);
	memset(&t->counts, 0, sizeof(t->counts));
	t->unit = TOP_UNIT_SAMPLES;
	t->in_use = false;
	t->variance = 0;
	t->period_ns = t->period_events = t->n_refused = t->start_ns = t->end_ns = 0;
}

void top_table_init(struct top_table *t)
{
	memset(t, 0, sizeof(*t));
	strtab_init(&t->strings, TOP_MAX_STRINGS);
	t->rows.max = TOP_MAX_ROWS;
	t->nodes.max = TOP_MAX_NODES;
}

void top_table_deinit(struct top_table *t)
{
	strtab_deinit(&t->strings);
	array_deinit(&t->rows);
	hash_index_deinit(&t->index);
	array_deinit(&t->nodes);
	hash_index_deinit(&t->node_index);
}

void top_model_init(struct top_model *m)
{
	for (uint32_t i = 0; i < TOP_MAX_INTERVALS; i++)
		top_table_init(&m->intervals[i]);
	top_table_init(&m->sum);
	m->first = m->n = 0;
}

void top_model_deinit(struct top_model *m)
{
	for (uint32_t i = 0; i < TOP_MAX_INTERVALS; i++)
		top_table_deinit(&m->intervals[i]);
	top_table_deinit(&m->sum);
}

static void forget_oldest(struct top_model *m)
{
	m->first = (m->first + 1) % TOP_MAX_INTERVALS;
	m->n--;
}

struct top_table *top_model_begin(struct top_model *m, uint64_t start_ns, uint64_t end_ns)
{
	struct top_table *t;

	if (m->n == TOP_MAX_INTERVALS)
		forget_oldest(m);
	t = &m->intervals[(m->first + m->n++) % TOP_MAX_INTERVALS];
	top_table_clear(t);
	t->start_ns = start_ns;
	t->end_ns = end_ns;
	return t;
}

struct top_row *top_table_row(struct top_table *t, const struct top_row *key)
{
	uint64_t h =
		hash_combine(hash_combine(hash_combine(key->function, key->module), key->owner),
			     hash_combine(key->comm, key->pid));
	uint32_t slot = hash_index_first(&t->index, h), i;
	struct top_row *row;

	while ((i = hash_index_row(&t->index, slot)) != HASH_INDEX_NONE) {
		row = &t->rows.items[i];
		if (hash_index_match(&t->index, slot, h) && row->function == key->function &&
		    row->module == key->module && row->comm == key->comm &&
		    row->owner == key->owner && row->pid == key->pid)
			return row;
		slot = hash_index_next(&t->index, slot);
	}
	row = array_push(&t->rows);
	if (row && hash_index_add(&t->index, h, t->rows.n - 1) < 0) {
		t->rows.n--;
		row = NULL;
	}
	if (!row) {
		t->n_refused++;
		return NULL;
	}
	row->function = key->function;
	row->module = key->module;
	row->comm = key->comm;
	row->owner = key->owner;
	row->pid = key->pid;
	row->code = key->code;
	return row;
}

uint32_t top_table_node(struct top_table *t, uint32_t parent, uint32_t row)
{
	uint64_t h = hash_combine(parent, row);
	uint32_t slot = hash_index_first(&t->node_index, h), i;
	struct top_node *node;

	while ((i = hash_index_row(&t->node_index, slot)) != HASH_INDEX_NONE) {
		node = &t->nodes.items[i];
		if (hash_index_match(&t->node_index, slot, h) && node->parent == parent &&
		    node->row == row)
			return i;
		slot = hash_index_next(&t->node_index, slot);
	}
	node = array_push(&t->nodes);
	if (node && hash_index_add(&t->node_index, h, t->nodes.n - 1) < 0) {
		t->nodes.n--;
		node = NULL;
	}
	if (!node) {
		t->n_refused++;
		return TOP_NO_NODE;
	}
	node->parent = parent;
	node->row = row;
	return t->nodes.n - 1;
}

/* The row of the key; NULL: full, counted. */
static struct top_row *intern_row(struct top_table *t, const struct top_key *key)
{
	uint64_t refused = t->strings.n_refused;
	struct top_row ids = {.pid = key->pid, .code = key->code};

	ids.function = strtab_put(&t->strings, key->function);
	ids.module = strtab_put(&t->strings, key->module);
	ids.comm = strtab_put(&t->strings, key->comm);
	ids.owner = strtab_put(&t->strings, key->owner);
	/* A refused text would add to a row without a name. */
	if (t->strings.n_refused != refused) {
		t->n_refused++;
		return NULL;
	}
	return top_table_row(t, &ids);
}

int top_table_add(struct top_table *t, const struct top_key *key, uint64_t self, uint64_t total)
{
	struct top_row *row = intern_row(t, key);

	if (!row)
		return -ENOSPC;
	row->self += self;
	row->total += total;
	return 0;
}

struct top_row *top_table_copy_row(struct top_table *t, const struct top_table *from, uint32_t row)
{
	const struct top_row *r = &from->rows.items[row];
	const struct top_key key = {
		.function = strtab_get(&from->strings, r->function),
		.module = strtab_get(&from->strings, r->module),
		.comm = strtab_get(&from->strings, r->comm),
		.owner = strtab_get(&from->strings, r->owner),
		.pid = r->pid,
		.code = r->code,
	};

	return intern_row(t, &key);
}

void top_table_copy_facts(struct top_table *t, const struct top_table *from)
{
	t->counts = from->counts;
	t->unit = from->unit;
	t->in_use = from->in_use;
	t->variance = from->variance;
	t->period_ns = from->period_ns;
	t->period_events = from->period_events;
	t->n_refused += from->n_refused;
	t->start_ns = from->start_ns;
	t->end_ns = from->end_ns;
}

/* rows: the row in sum for each row of t; TOP_NO_NODE: refused. */
static void add_nodes(struct top_table *sum, const struct top_table *t, const uint32_t *rows)
{
	_cleanup_free_ uint32_t *nodes = calloc((size_t)t->nodes.n + 1, sizeof(*nodes));

	if (!nodes) {
		sum->n_refused += t->nodes.n;
		return;
	}
	for (uint32_t i = 0; i < t->nodes.n; i++) {
		const struct top_node *n = &t->nodes.items[i];
		uint32_t parent = n->parent == TOP_NO_NODE ? TOP_NO_NODE : nodes[n->parent];

		nodes[i] = TOP_NO_NODE;
		if (rows[n->row] == TOP_NO_NODE ||
		    (n->parent != TOP_NO_NODE && parent == TOP_NO_NODE))
			continue;
		nodes[i] = top_table_node(sum, parent, rows[n->row]);
		if (nodes[i] == TOP_NO_NODE)
			continue;
		sum->nodes.items[nodes[i]].self += n->self;
		sum->nodes.items[nodes[i]].total += n->total;
	}
}

static void add_interval(struct top_table *sum, const struct top_table *t)
{
	_cleanup_free_ uint32_t *rows = calloc((size_t)t->rows.n + 1, sizeof(*rows));

	for (uint32_t i = 0; i < t->rows.n; i++) {
		const struct top_row *r = &t->rows.items[i];
		struct top_row *row = top_table_copy_row(sum, t, i);

		if (row) {
			row->self += r->self;
			row->total += r->total;
		}
		if (rows)
			rows[i] = row ? (uint32_t)(row - sum->rows.items) : TOP_NO_NODE;
	}
	if (rows)
		add_nodes(sum, t, rows);
	if (!sum->end_ns)
		sum->start_ns = t->start_ns;
	sum->end_ns = t->end_ns;
	sum->unit = t->unit;
	sum->in_use = t->in_use;
	sum->variance += t->variance;
	sum->period_ns = t->period_ns;
	sum->period_events = t->period_events;
	sum->counts.n_samples += t->counts.n_samples;
	sum->counts.whole += t->counts.whole;
	sum->counts.idle_ns += t->counts.idle_ns;
	sum->counts.n_lost += t->counts.n_lost;
	sum->counts.n_user_stacks += t->counts.n_user_stacks;
	sum->counts.n_incomplete += t->counts.n_incomplete;
	sum->n_refused += t->n_refused;
}

struct order {
	const struct strtab *strings;
	enum top_sort sort;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	const struct top_row *x = a, *y = b;
	bool self = o->sort == TOP_SORT_SELF;
	uint64_t v = self ? x->self : x->total, w = self ? y->self : y->total;
	int c;

	if (v != w)
		return v < w ? 1 : -1;
	v = self ? x->total : x->self;
	w = self ? y->total : y->self;
	if (v != w)
		return v < w ? 1 : -1;
	c = strcmp(strtab_get(o->strings, x->function), strtab_get(o->strings, y->function));
	if (!c)
		c = strcmp(strtab_get(o->strings, x->comm), strtab_get(o->strings, y->comm));
	return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

void top_table_sort(struct top_table *t, enum top_sort sort)
{
	struct order order = {&t->strings, sort};

	if (t->rows.n) /* the index has the old order */
		qsort_r(t->rows.items, t->rows.n, sizeof(*t->rows.items), compare, &order);
}

const struct top_table *top_model_slide(struct top_model *m, uint64_t now_ns, uint64_t window_ns)
{
	uint64_t oldest = now_ns > window_ns ? now_ns - window_ns : 0;
	uint32_t first = 0;

	while (m->n && m->intervals[m->first].end_ns <= oldest)
		forget_oldest(m);
	top_table_clear(&m->sum);
	if (m->n > 0 && m->intervals[(m->first + m->n - 1) % TOP_MAX_INTERVALS].in_use)
		first = m->n - 1;
	for (uint32_t i = first; i < m->n; i++)
		add_interval(&m->sum, &m->intervals[(m->first + i) % TOP_MAX_INTERVALS]);
	return &m->sum;
}
