/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each interval keeps its own strings, and the sum is made anew for each refresh: nothing has to be
 * taken out of a table, so one that runs for weeks holds no more than its window.
 */
#include "src/top/model.h"

#include <errno.h>
#include <stdbool.h>

void top_table_clear(struct top_table *t)
{
	strtab_clear(&t->strings);
	array_clear(&t->rows);
	hash_index_clear(&t->index);
	memset(&t->counts, 0, sizeof(t->counts));
	t->period_ns = t->n_refused = t->start_ns = t->end_ns = 0;
}

void top_table_init(struct top_table *t)
{
	memset(t, 0, sizeof(*t));
	strtab_init(&t->strings, TOP_MAX_STRINGS);
	t->rows.max = TOP_MAX_ROWS;
}

void top_table_deinit(struct top_table *t)
{
	strtab_deinit(&t->strings);
	array_deinit(&t->rows);
	hash_index_deinit(&t->index);
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
	return row;
}

int top_table_add(struct top_table *t, const struct top_key *key, uint64_t self, uint64_t total)
{
	uint64_t refused = t->strings.n_refused;
	struct top_row ids = {.pid = key->pid}, *row;

	ids.function = strtab_put(&t->strings, key->function);
	ids.module = strtab_put(&t->strings, key->module);
	ids.comm = strtab_put(&t->strings, key->comm);
	ids.owner = strtab_put(&t->strings, key->owner);
	/* A text that was refused would be booked on somebody without a name. */
	if (t->strings.n_refused != refused) {
		t->n_refused++;
		return -ENOSPC;
	}
	row = top_table_row(t, &ids);
	if (!row)
		return -ENOSPC;
	row->self += self;
	row->total += total;
	return 0;
}

static void add_interval(struct top_table *sum, const struct top_table *t)
{
	for (uint32_t i = 0; i < t->rows.n; i++) {
		const struct top_row *r = &t->rows.items[i];
		const struct top_key key = {
			.function = strtab_get(&t->strings, r->function),
			.module = strtab_get(&t->strings, r->module),
			.comm = strtab_get(&t->strings, r->comm),
			.owner = strtab_get(&t->strings, r->owner),
			.pid = r->pid,
		};

		(void)top_table_add(sum, &key, r->self, r->total);
	}
	if (!sum->end_ns)
		sum->start_ns = t->start_ns;
	sum->end_ns = t->end_ns;
	sum->period_ns = t->period_ns;
	sum->counts.n_samples += t->counts.n_samples;
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

	if (t->rows.n) /* the index knows the old order */
		qsort_r(t->rows.items, t->rows.n, sizeof(*t->rows.items), compare, &order);
}

const struct top_table *top_model_slide(struct top_model *m, uint64_t now_ns, uint64_t window_ns,
					enum top_sort sort)
{
	uint64_t oldest = now_ns > window_ns ? now_ns - window_ns : 0;

	while (m->n && m->intervals[m->first].end_ns <= oldest)
		forget_oldest(m);
	top_table_clear(&m->sum);
	for (uint32_t i = 0; i < m->n; i++)
		add_interval(&m->sum, &m->intervals[(m->first + i) % TOP_MAX_INTERVALS]);
	top_table_sort(&m->sum, sort);
	return &m->sum;
}
