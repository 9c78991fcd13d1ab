/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a profile, like those of perf report: equal values of the keys make one row. Keys of
 * the owner (comm, container, unit, thread) are the same for a whole stack, keys of the place
 * (module, symbol, line) differ for each function in it. A row's total counts a sample once,
 * however often the row recurs in the stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/frame.h"
#include "src/render/report-internal.h"
#include "util/text.h"

#define MAX_TEXT_BYTES (UINT64_C(512) << 20)

/* ---- Rows ---- */

static struct report_entry *entry_of(struct report *r, uint32_t owner, uint32_t place)
{
	uint64_t hash = hash_combine(hash_u64(owner), place);
	uint32_t slot = hash_index_first(&r->index, hash), row;
	struct report_entry *e;

	while ((row = hash_index_row(&r->index, slot)) != HASH_INDEX_NONE) {
		e = &r->entries.items[row];
		if (e->owner == owner && e->place == place)
			return e;
		slot = hash_index_next(&r->index, slot);
	}
	e = array_push(&r->entries);
	if (!e || hash_index_add(&r->index, hash, r->entries.n - 1) < 0)
		return NULL;
	*e = (struct report_entry){.owner = owner, .place = place};
	return e;
}

static int count(struct report *r, const struct aggregate_row *row, uint64_t number, uint32_t place,
		 bool leaf)
{
	struct report_entry *e = entry_of(r, report_owner(r, row->thread), place);

	if (!e)
		return -ENOMEM;
	if (leaf) {
		e->self = profile_sum(e->self, row->value);
		e->self_squares += row->squares;
	}
	if (e->seen != number) {
		e->total = profile_sum(e->total, row->value);
		e->total_squares += row->squares;
	}
	e->seen = number;
	return 0;
}

struct counting {
	const struct aggregate_row *row;
	uint64_t number;
};

static int count_place(struct report *r, void *ctx, uint32_t place, uint32_t at)
{
	const struct counting *c = ctx;

	return count(r, c->row, c->number, place, at == 0);
}

static int count_rows(struct report *r)
{
	int e = 0;

	for (uint32_t i = 0; i < r->a.rows.n && e == 0; i++) {
		struct counting c = {&r->a.rows.items[i], i + 1};

		if (!report_row_wanted(r, c.row))
			continue;
		r->total = profile_sum(r->total, profile_size(c.row->value));
		r->squares += c.row->squares;
		if (r->by_place)
			e = report_each_place(r, c.row->stack, count_place, &c);
		else
			e = count(r, c.row, c.number, STRID_EMPTY, true);
	}
	return e;
}

/* ---- The table ---- */

/* The largest first; of the same size growth before shrinkage. */
static int by_size(int64_t x, int64_t y)
{
	int64_t p = profile_size(x), q = profile_size(y);

	return p != q ? (p < q ? 1 : -1) : x != y ? (x < y ? 1 : -1) : 0;
}

static int by_self(const void *a, const void *b)
{
	const struct report_entry *x = a, *y = b;

	int r = by_size(x->self, y->self);

	r = r ? r : by_size(x->total, y->total);
	if (r)
		return r;
	return x->place != y->place ? (x->place < y->place ? -1 : 1)
				    : (x->owner < y->owner ? -1 : x->owner > y->owner);
}

static int by_total(const void *a, const void *b)
{
	const struct report_entry *x = a, *y = b;

	int r = by_size(x->total, y->total);

	return r ? r : by_self(a, b);
}

/* Puts the entries to show first, in their order, and returns how many; sums up the rest. */
static uint32_t choose_entries(struct report *r, uint32_t max, uint32_t *ret_hidden,
			       int64_t *ret_rest)
{
	uint32_t shown = 0;

	*ret_hidden = 0;
	*ret_rest = 0;
	if (r->entries.n)
		qsort(r->entries.items, r->entries.n, sizeof(*r->entries.items),
		      r->o->by_total ? by_total : by_self);
	for (uint32_t i = 0; i < r->entries.n; i++) {
		const struct report_entry e = r->entries.items[i];
		int64_t most = r->o->no_total ? e.self : e.total;

		if (r->has_symbol && !report_place_matches(r, e.place))
			continue;
		if ((max && shown == max) ||
		    table_share((double)profile_size(most), (double)r->total) < r->o->min_percent) {
			++*ret_hidden;
			*ret_rest = profile_sum(*ret_rest, e.self);
			continue;
		}
		r->entries.items[shown++] = e;
	}
	return shown;
}

/* Calls fn for the values of an entry's keys, in the order of the columns. */
static void each_cell(const struct report *r, struct table *t, const struct report_entry *e,
		      void (*fn)(struct table *t, const char *text, size_t n))
{
	const char *owner = strtab_get(&r->texts, e->owner);
	const char *place = strtab_get(&r->texts, e->place);

	t->at = 0;
	for (uint32_t k = 0; k < r->o->n_keys; k++) {
		const char **from = report_key_is_owner(r->o->keys[k]) ? &owner : &place;
		size_t n = strcspn(*from, "\t");

		fn(t, *from, n);
		*from += n + ((*from)[n] != '\0');
	}
}

static bool asks_span(const struct render_report_options *o)
{
	return (o->trace && *o->trace) || (o->span && *o->span);
}

static bool has_labels(const struct profile *p)
{
	for (uint32_t i = 0; i < p->threads.n; i++) {
		if (p->threads.items[i].labels != STRID_EMPTY)
			return true;
	}
	return false;
}

static void print_entries(struct report *r, struct table *t)
{
	uint32_t hidden;
	int64_t rest;
	uint32_t n = choose_entries(r, r->o->max_rows, &hidden, &rest);

	for (uint32_t i = 0; i < r->o->n_keys; i++)
		table_column(t, report_key_title(r->o->keys[i]));
	for (uint32_t i = 0; i < n; i++)
		each_cell(r, t, &r->entries.items[i], table_measure);
	table_head(t, r->by_place && !r->o->no_total);
	for (uint32_t i = 0; i < n; i++) {
		const struct report_entry *e = &r->entries.items[i];

		table_begin(t, report_estimate(r, e->self, e->self_squares),
			    report_estimate(r, e->total, e->total_squares), e->self);
		each_cell(r, t, e, table_cell);
		table_end(t);
	}
	if (n == 0)
		table_note(t, asks_span(r->o) && !has_labels(r->p)
				      ? "no sample matches: none of them has a span; perf.data and "
					"folded stacks never have one"
				      : "no sample matches");
	table_rest(t, hidden, table_share(rest, r->total));
}

/* A tree for each of the first entries. */
static int print_entry_trees(struct report *r, struct table *t)
{
	uint32_t hidden, n;
	int64_t rest;
	int e = 0;

	n = choose_entries(r, r->o->max_rows, &hidden, &rest);
	for (uint32_t i = 0; i < n && e == 0; i++) {
		const struct report_entry only = r->entries.items[i];
		const char *owner = strtab_get(&r->texts, only.owner), *symbol;
		size_t length = report_symbol_of(r, only.place, &symbol);
		char what[FRAME_MAX_NAME * 2];

		(void)snprintf(what, sizeof(what), "%.*s%s%s", (int)length, symbol,
			       *owner ? " of " : "", owner);
		for (char *c = what; *c; c++)
			*c = *c == REPORT_SEPARATOR ? ' ' : *c;
		r->only = &only;
		e = report_print_trees(r, t, what);
		r->only = NULL;
	}
	return e;
}

static int report_run(struct report *r, struct table *t)
{
	int e = count_rows(r);

	if (e < 0)
		return e;
	if (r->o->confidence)
		table_intervals(t, r->p, r->a.sampling.known,
				(struct weight){(double)r->total, r->squares});
	if (!r->o->callers && !r->o->callees)
		print_entries(r, t);
	else if (r->has_symbol)
		e = report_print_trees(r, t, r->o->symbol);
	else
		e = print_entry_trees(r, t);
	return e;
}

static int report_init(struct report *r)
{
	const struct render_report_options *o = r->o;

	for (uint32_t i = 0; i < o->n_keys; i++) {
		r->by_owner |= report_key_is_owner(o->keys[i]);
		r->by_place |= !report_key_is_owner(o->keys[i]);
	}
	if (o->symbol && *o->symbol) {
		if (regcomp(&r->symbol, o->symbol, REG_EXTENDED | REG_NOSUB) != 0)
			return -EINVAL;
		r->has_symbol = true;
	}
	strtab_init(&r->texts, MAX_TEXT_BYTES);
	r->places.max = r->entries.max = UINT32_MAX / 2;
	r->frames = calloc((size_t)r->p->frames.n + 1, sizeof(*r->frames));
	r->owners = calloc((size_t)r->p->threads.n + 1, sizeof(*r->owners));
	return r->frames && r->owners ? 0 : -ENOMEM;
}

static void report_deinit(struct report *r)
{
	if (r->has_symbol)
		regfree(&r->symbol);
	strtab_deinit(&r->texts);
	array_deinit(&r->places);
	array_deinit(&r->entries);
	array_deinit(&r->nodes);
	hash_index_deinit(&r->node_index);
	hash_index_deinit(&r->index);
	free(r->frames);
	free(r->owners);
}

static void choose_keys(const struct profile *p, struct render_report_options *o)
{
	bool modules = false;

	for (uint32_t i = 0; i < p->modules.n; i++)
		modules |= p->modules.items[i].path != STRID_EMPTY;
	o->keys[o->n_keys++] = REPORT_COMM;
	if (modules)
		o->keys[o->n_keys++] = REPORT_MODULE;
	o->keys[o->n_keys++] = REPORT_SYMBOL;
}

int render_report(const struct profile *p, const struct render_info *info,
		  const struct render_report_options *options, FILE *out)
{
	struct render_report_options o = *options;
	struct report r = {.p = p, .o = &o};
	struct table t;
	int e;

	if (o.n_keys == 0)
		choose_keys(p, &o);

	e = aggregate_build(&r.a, p, NULL);
	if (e == 0)
		e = report_init(&r);
	if (e == 0) {
		table_init(&t, out, options->width, options->color, options->csv);
		table_facts(&t, p, info);
		e = report_run(&r, &t);
	}
	report_deinit(&r);
	aggregate_deinit(&r.a);
	return e < 0 ? e : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
