/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each interval keeps its own strings, and the sum is made anew for each refresh: nothing has to be
 * taken out of a table, so one that runs for weeks holds no more than its window.
 */
#include "src/top/model.h"

#include <errno.h>

static void table_clear(struct top_table *t)
{
	strtab_clear(&t->strings);
	array_clear(&t->rows);
	hash_index_clear(&t->index);
	t->n_samples = t->n_lost = t->n_refused = t->start_ns = t->end_ns = 0;
}

static void table_init(struct top_table *t)
{
	memset(t, 0, sizeof(*t));
	strtab_init(&t->strings, TOP_MAX_STRINGS);
	t->rows.max = TOP_MAX_ROWS;
}

static void table_deinit(struct top_table *t)
{
	strtab_deinit(&t->strings);
	array_deinit(&t->rows);
	hash_index_deinit(&t->index);
}

void top_model_init(struct top_model *m)
{
	for (uint32_t i = 0; i < TOP_MAX_INTERVALS; i++)
		table_init(&m->intervals[i]);
	table_init(&m->sum);
	m->first = m->n = 0;
}

void top_model_deinit(struct top_model *m)
{
	for (uint32_t i = 0; i < TOP_MAX_INTERVALS; i++)
		table_deinit(&m->intervals[i]);
	table_deinit(&m->sum);
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
	table_clear(t);
	t->start_ns = start_ns;
	t->end_ns = end_ns;
	return t;
}

static struct top_row *row_of(struct top_table *t, const struct top_row *key)
{
	uint64_t h = hash_combine(hash_combine(key->function, key->module),
				  hash_combine(key->comm, key->pid));
	uint32_t slot = hash_index_first(&t->index, h), i;
	struct top_row *row;

	while ((i = hash_index_row(&t->index, slot)) != HASH_INDEX_NONE) {
		row = &t->rows.items[i];
		if (hash_index_match(&t->index, slot, h) && row->function == key->function &&
		    row->module == key->module && row->comm == key->comm && row->pid == key->pid)
			return row;
		slot = hash_index_next(&t->index, slot);
	}
	row = array_push(&t->rows);
	if (!row)
		return NULL;
	*row = *key;
	if (hash_index_add(&t->index, h, t->rows.n - 1) < 0) {
		t->rows.n--;
		return NULL;
	}
	return row;
}

int top_table_add(struct top_table *t, const char *function, const char *module, const char *comm,
		  uint32_t pid, uint64_t self, uint64_t total)
{
	uint64_t refused = t->strings.n_refused;
	struct top_row key = {.pid = pid}, *row;

	key.function = strtab_put(&t->strings, function);
	key.module = strtab_put(&t->strings, module);
	key.comm = strtab_put(&t->strings, comm);
	/* A text that was refused would be booked on somebody without a name. */
	row = t->strings.n_refused == refused ? row_of(t, &key) : NULL;
	if (!row) {
		t->n_refused++;
		return -ENOSPC;
	}
	row->self += self;
	row->total += total;
	return 0;
}

static void add_interval(struct top_table *sum, const struct top_table *t)
{
	for (uint32_t i = 0; i < t->rows.n; i++) {
		const struct top_row *r = &t->rows.items[i];

		(void)top_table_add(sum, strtab_get(&t->strings, r->function),
				    strtab_get(&t->strings, r->module),
				    strtab_get(&t->strings, r->comm), r->pid, r->self, r->total);
	}
	if (!sum->end_ns)
		sum->start_ns = t->start_ns;
	sum->end_ns = t->end_ns;
	sum->n_samples += t->n_samples;
	sum->n_lost += t->n_lost;
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
	uint64_t v = o->sort == TOP_SORT_SELF ? x->self : x->total;
	uint64_t w = o->sort == TOP_SORT_SELF ? y->self : y->total;
	int c;

	if (v != w)
		return v < w ? 1 : -1;
	c = strcmp(strtab_get(o->strings, x->function), strtab_get(o->strings, y->function));
	return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

const struct top_table *top_model_slide(struct top_model *m, uint64_t now_ns, uint64_t window_ns,
					enum top_sort sort)
{
	uint64_t oldest = now_ns > window_ns ? now_ns - window_ns : 0;
	struct order order = {&m->sum.strings, sort};

	while (m->n && m->intervals[m->first].end_ns <= oldest)
		forget_oldest(m);
	table_clear(&m->sum);
	for (uint32_t i = 0; i < m->n; i++)
		add_interval(&m->sum, &m->intervals[(m->first + i) % TOP_MAX_INTERVALS]);
	if (m->sum.rows.n) /* the index knows the old order and is emptied before its next use */
		qsort_r(m->sum.rows.items, m->sum.rows.n, sizeof(*m->sum.rows.items), compare,
			&order);
	return &m->sum;
}
