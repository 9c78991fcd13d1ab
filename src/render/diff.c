/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two captures by the share of each function, in percentage points, so that captures of
 * different length or load are comparable. Memory in use at two moments is compared by its amount:
 * what stays has another share as soon as something else grows. A change of shares that chance
 * alone explains is marked as noise: by an exact test of the numbers of samples
 * (util/confidence.c), corrected for the number of functions, since among many one always stands
 * out.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/amount.h"
#include "src/render/calltree.h"
#include "src/render/render.h"
#include "src/render/table.h"
#include "util/cleanup.h"

#define MAX_TEXT_BYTES (UINT64_C(512) << 20)

/* Of the columns before the names. */
#define SHARES_WIDTH  42
#define AMOUNTS_WIDTH 52

enum { SELF, TOTAL, N_COLUMNS };

struct diff_row {
	uint32_t key;			/* of texts: name and module */
	struct weight of[N_COLUMNS][2]; /* before and after */
	double share[N_COLUMNS][2];	/* likewise, per cent; or amounts */
	double p[N_COLUMNS];		/* see test_column() */
};

struct diff {
	struct strtab texts;
	ARRAY(struct diff_row)
	rows; /* by key - 1: keys are given out in order, 0 is the empty text */
	struct weight whole[2];
	double n_samples[2];
	bool known[2];	  /* n_samples is known: if both are, noise can be recognized */
	bool counts;	  /* the files say that their numbers count samples or events */
	const char *unit; /* of amounts; NULL: shares */
};

static struct diff_row *row_of(struct diff *d, const struct calltree *t,
			       const struct call_symbol *s)
{
	char text[2 * FRAME_MAX_NAME + 2];
	int n = snprintf(text, sizeof(text), "%s\t%s", strtab_get(&t->names, s->name),
			 strtab_get(&t->names, s->module));
	strid key =
		strtab_put_n(&d->texts, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
	struct diff_row *r;

	if (key == STRID_EMPTY)
		return NULL;
	if (key <= d->rows.n)
		return &d->rows.items[key - 1];
	r = array_push(&d->rows);
	if (r)
		*r = (struct diff_row){.key = key};
	return r;
}

/* Folded stacks have no modules: then only names are compared. */
static bool knows_modules(const struct profile *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (p->modules.items[i].path != STRID_EMPTY)
			return true;
	return false;
}

static int add_side(struct diff *d, const struct profile *p, int side, unsigned int flags)
{
	struct calltree t;
	int r = calltree_build(&t, p, flags);

	d->whole[side] = (struct weight){r == 0 ? (double)t.nodes.items[0].total : 0, t.squares};
	d->n_samples[side] = t.sampling.n_samples;
	d->known[side] = t.sampling.known;
	d->counts &= p->types[0].weighted || profile_has_period(p);
	for (uint32_t i = 0; r == 0 && i < t.symbols.n; i++) {
		const struct call_symbol *s = &t.symbols.items[i];
		struct diff_row *row;

		if (s->kind == FRAME_PROCESS)
			continue;
		row = row_of(d, &t, s);
		if (!row) {
			r = -ENOMEM;
			break;
		}
		weight_add(&row->of[SELF][side], (struct weight){(double)s->self, s->self_squares});
		weight_add(&row->of[TOTAL][side],
			   (struct weight){(double)s->total, s->total_squares});
	}
	calltree_deinit(&t);
	return r;
}

static bool can_test(const struct diff *d)
{
	return d->known[0] && d->known[1] && !d->unit;
}

/* What a weight of a side is compared by. */
static double size_of(const struct diff *d, int side, double sum)
{
	if (d->unit)
		return sum;
	return d->whole[side].sum > 0 ? 100 * sum / d->whole[side].sum : 0;
}

/* The corrected probability that chance alone makes such a change: CONFIDENCE_ALPHA is the expected
 * part of noise among the rows with less. */
static int test_column(struct diff *d, int column)
{
	_cleanup_free_ double *p = malloc(((size_t)d->rows.n + 1) * sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->rows.n; i++)
		p[i] = confidence_p_value(d->rows.items[i].of[column], d->whole, d->n_samples);
	r = confidence_correct(p, d->rows.n);
	for (uint32_t i = 0; i < d->rows.n; i++)
		d->rows.items[i].p[column] = p[i];
	return r;
}

/* Computes shares, and which of their changes are noise. */
static int compare_sides(struct diff *d)
{
	int r = 0;

	for (int column = 0; column < N_COLUMNS && r == 0; column++) {
		for (uint32_t i = 0; i < d->rows.n; i++) {
			struct diff_row *row = &d->rows.items[i];

			for (int side = 0; side < 2; side++)
				row->share[column][side] =
					size_of(d, side, row->of[column][side].sum);
		}
		r = can_test(d) ? test_column(d, column) : 0;
	}
	return r;
}

static double change(const struct diff_row *r, int column)
{
	return r->share[column][1] - r->share[column][0];
}

static bool is_noise(const struct diff *d, const struct diff_row *r, int column)
{
	return can_test(d) && r->p[column] >= CONFIDENCE_ALPHA;
}

static int by_change(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	for (int column = 0; column < N_COLUMNS; column++) {
		double p = fabs(change(x, column)), q = fabs(change(y, column));

		if (p != q)
			return p < q ? 1 : -1;
	}
	return x->key < y->key ? -1 : x->key > y->key;
}

static char noise_mark(const struct diff *d, const struct diff_row *r, int column)
{
	return change(r, column) != 0 && is_noise(d, r, column) ? '~' : ' ';
}

/* In its column of 10. */
static void print_amount(const struct diff *d, struct table *t, double amount, bool sign)
{
	char text[72];

	(void)amount_text(text, sizeof(text), (int64_t)fabs(amount), d->unit);
	(void)fprintf(t->out, "%*s%s ", 10 - (int)strlen(text),
		      !sign || amount == 0 ? ""
		      : amount > 0	   ? "+"
					   : "-",
		      text);
}

static void print_amounts(const struct diff *d, struct table *t, const struct diff_row *r,
			  const char *mark)
{
	print_amount(d, t, r->share[SELF][0], false);
	print_amount(d, t, r->share[SELF][1], false);
	print_amount(d, t, change(r, SELF), true);
	print_amount(d, t, change(r, TOTAL), true);
	(void)fprintf(t->out, "%-4s  ", mark);
}

static void print_numbers(const struct diff *d, struct table *t, const struct diff_row *r)
{
	const double *self = r->share[SELF], *total = r->share[TOTAL];
	const char *mark = total[0] == 0 ? "new" : total[1] == 0 ? "gone" : "";

	if (t->csv)
		(void)fprintf(t->out, "%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%s", self[0], self[1],
			      change(r, SELF), total[0], total[1], change(r, TOTAL), mark);
	else if (d->unit)
		print_amounts(d, t, r, mark);
	else
		(void)fprintf(t->out, "%7.2f%% %7.2f%%  %+7.2f%c %+7.2f%c %-4s  ", self[0], self[1],
			      change(r, SELF), noise_mark(d, r, SELF), change(r, TOTAL),
			      noise_mark(d, r, TOTAL), mark);
}

static void print_row(const struct diff *d, struct table *t, const struct diff_row *r)
{
	const char *text = strtab_get(&d->texts, r->key), *tab = strchr(text, '\t');
	bool dim = is_noise(d, r, SELF) && is_noise(d, r, TOTAL);
	size_t n = tab ? (size_t)(tab - text) : strlen(text);

	if (dim)
		table_dim(t, true);
	print_numbers(d, t, r);
	t->at = 0;
	t->room = (int)t->width - (d->unit ? AMOUNTS_WIDTH : SHARES_WIDTH);
	table_cell(t, text, n);
	table_cell(t, tab ? tab + 1 : "", tab ? strlen(tab + 1) : 0);
	for (int column = 0; t->csv && column < N_COLUMNS; column++)
		(void)fprintf(t->out, can_test(d) ? "\t%.3g" : "\t", r->p[column]);
	if (dim)
		table_dim(t, false);
	table_end(t);
}

static void print_sums(const struct diff *d, FILE *out)
{
	char before[72], after[72];

	(void)fprintf(out, "In use: %s before, %s after\n",
		      amount_text(before, sizeof(before), (int64_t)d->whole[0].sum, d->unit),
		      amount_text(after, sizeof(after), (int64_t)d->whole[1].sum, d->unit));
}

static void print_facts(const struct diff *d, const struct profile *before,
			const struct profile *after, FILE *out)
{
	(void)fprintf(out, "%" PRIu64 " samples before, %" PRIu64 " after\n",
		      profile_view_counter(before, PROFILE_SAMPLES),
		      profile_view_counter(after, PROFILE_SAMPLES));
	if (d->unit)
		print_sums(d, out);
	else if (can_test(d))
		(void)fprintf(out,
			      "~ marks noise: an exact test at 95%%, for all %" PRIu32
			      " functions together%s\n",
			      d->rows.n, d->counts ? "" : ", if the files count samples");
	else
		(void)fprintf(out,
			      "Noise is unknown: the %s file does not say how many samples its "
			      "values add up\n",
			      d->known[0] ? "second" : "first");
}

static void print_head(const struct diff *d, struct table *t)
{
	if (t->csv)
		(void)fputs("self_before\tself_after\tself_change\ttotal_before\ttotal_after\t"
			    "total_change\tmark\tSYMBOL\tMODULE\tself_p\ttotal_p\n",
			    t->out);
	else if (d->unit)
		(void)fputs(
			"\n    BEFORE      AFTER       SELF      TOTAL        SYMBOL and module; "
			"changes of the amount in use\n",
			t->out);
	else
		(void)fputs(
			"\n  BEFORE    AFTER     SELF    TOTAL        SYMBOL and module; changes "
			"in percentage points\n",
			t->out);
}

static void print_rows(struct diff *d, struct table *t, const struct render_report_options *o)
{
	double least =
		o->min_percent * (d->unit ? fmax(d->whole[0].sum, d->whole[1].sum) / 100 : 1);
	uint32_t shown = 0, hidden = 0;

	if (d->rows.n)
		qsort(d->rows.items, d->rows.n, sizeof(*d->rows.items), by_change);
	table_column(t, "SYMBOL");
	table_column(t, "MODULE");
	for (uint32_t i = 0; i < d->rows.n; i++) {
		const char *text = strtab_get(&d->texts, d->rows.items[i].key);

		if (o->max_rows && i == o->max_rows)
			break;
		t->at = 0;
		table_measure(t, text, strcspn(text, "\t"));
	}
	print_head(d, t);
	for (uint32_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *r = &d->rows.items[i];

		if ((o->max_rows && shown == o->max_rows) ||
		    (fabs(change(r, SELF)) < least && fabs(change(r, TOTAL)) < least)) {
			hidden++;
			continue;
		}
		print_row(d, t, r);
		shown++;
	}
	if (hidden && !t->csv)
		(void)fprintf(t->out, "%" PRIu32 " more functions changed less\n", hidden);
}

/* ---- Folded stacks with two counts ---- */

struct stacks {
	struct strtab texts;
	ARRAY(uint64_t) counts; /* before and after, by text - 1 */
};

static int add_path(struct stacks *s, const char *path, uint64_t self, int side)
{
	strid id = strtab_put(&s->texts, path);
	uint64_t *item;

	if (id == STRID_EMPTY)
		return -ENOMEM;
	while (s->counts.n < 2 * id) {
		item = array_push(&s->counts);
		if (!item)
			return -ENOMEM;
		*item = 0;
	}
	s->counts.items[2 * (id - 1) + (uint32_t)side] += self;
	return 0;
}

static int add_paths(struct stacks *s, const struct profile *p, int side)
{
	_cleanup_free_ char *text = NULL;
	char *line, *save = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r = f ? render_folded(p, NULL, f) : -ENOMEM;

	if (f && fclose(f) != 0 && r == 0)
		r = -ENOMEM;
	for (line = r == 0 ? strtok_r(text, "\n", &save) : NULL; line && r == 0;
	     line = strtok_r(NULL, "\n", &save)) {
		char *space = strrchr(line, ' ');

		if (!space)
			continue;
		*space = '\0';
		r = add_path(s, line, strtoull(space + 1, NULL, 10), side);
	}
	return r;
}

int render_diff_folded(const struct profile *before, const struct profile *after,
		       const struct render_info *info, FILE *out)
{
	struct stacks s = {.counts = ARRAY_INIT(UINT32_MAX / 2)};
	int r;

	strtab_init(&s.texts, MAX_TEXT_BYTES);
	r = add_paths(&s, before, 0);
	if (r == 0)
		r = add_paths(&s, after, 1);
	for (uint32_t i = 0; r == 0 && i < s.counts.n / 2; i++)
		(void)fprintf(out, "%s %" PRIu64 " %" PRIu64 "\n", strtab_get(&s.texts, i + 1),
			      s.counts.items[2 * i], s.counts.items[2 * i + 1]);
	array_deinit(&s.counts);
	strtab_deinit(&s.texts);
	return r < 0 ? r : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int render_diff(const struct profile *before, const struct profile *after,
		const struct render_report_options *options, FILE *out)
{
	struct diff d = {.rows = ARRAY_INIT(UINT32_MAX / 2),
			 .counts = true,
			 .unit = profile_is_in_use(after, 0) ? profile_period_unit(after) : NULL};
	const struct profile *const sides[2] = {before, after};
	unsigned int flags = CALLTREE_ANY_KIND;
	struct table t;
	int r = 0;

	if (knows_modules(before) && knows_modules(after))
		flags |= CALLTREE_MODULES;
	strtab_init(&d.texts, MAX_TEXT_BYTES);
	for (int i = 0; i < 2 && r == 0; i++)
		r = add_side(&d, sides[i], i, flags);
	if (r == 0)
		r = compare_sides(&d);
	if (r == 0) {
		table_init(&t, out, options->width, options->color, options->csv);
		if (!t.csv)
			print_facts(&d, before, after, out);
		print_rows(&d, &t, options);
	}
	array_deinit(&d.rows);
	strtab_deinit(&d.texts);
	return r < 0 ? r : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
