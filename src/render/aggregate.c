/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/render/aggregate.h"
#include "util/hash.h"

static int64_t number_of(const struct profile_sample *s)
{
	return s->value < 0 ? -(int64_t)s->n : s->n;
}

/* The number of samples in a value; unknown for a difference. */
static double count_of(const struct profile *p, const struct profile_sample *s)
{
	return s->value < 0 ? 0 : p->types[0].weighted ? s->n : (double)s->value;
}

static struct sampling find_sampling(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];
	struct sampling how = {.known = true};
	double sum = 0, mean;

	for (uint32_t i = 0; i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];

		how.known &= count_of(p, s) > 0;
		how.n_samples += count_of(p, s);
		sum += (double)s->value;
	}
	if (!how.known || !t->weighted || t->samples.n < 2)
		return how;
	mean = sum / how.n_samples;
	for (uint32_t i = 0; i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];
		double off = (double)s->value / s->n - mean;

		how.spread += s->n * off * off / (t->samples.n - 1);
	}
	return how;
}

/* The sum of the squares of the values within a sample of the profile. */
static double squares_within(const struct sampling *how, const struct profile *p,
			     const struct profile_sample *s)
{
	double value = (double)s->value;

	if (!p->types[0].weighted)
		return value;
	return how->known ? value * value / s->n + (s->n - 1) * how->spread : 0;
}

static int add(struct aggregate *a, struct hash_index *ix, const struct profile *p,
	       const struct profile_sample *s, uint32_t *ret_row)
{
	double squares = squares_within(&a->sampling, p, s);
	uint64_t hash = hash_u64((uint64_t)s->thread << 32 | s->stack);
	uint32_t slot = hash_index_first(ix, hash), row;
	struct aggregate_row *r;

	while ((row = hash_index_row(ix, slot)) != HASH_INDEX_NONE) {
		r = &a->rows.items[row];
		if (r->thread == s->thread && r->stack == s->stack) {
			r->value = profile_sum(r->value, s->value);
			r->n += number_of(s);
			r->squares += squares;
			*ret_row = row;
			return 0;
		}
		slot = hash_index_next(ix, slot);
	}
	r = array_push(&a->rows);
	if (!r || hash_index_add(ix, hash, a->rows.n - 1) < 0)
		return -ENOMEM;
	*r = (struct aggregate_row){s->thread, s->stack, s->value, number_of(s), squares};
	*ret_row = a->rows.n - 1;
	return 0;
}

int aggregate_build(struct aggregate *a, const struct profile *p, uint32_t *ret_rows)
{
	struct hash_index ix = HASH_INDEX_INIT;
	int r = 0;

	*a = (struct aggregate){.rows = ARRAY_INIT(UINT32_MAX), .sampling = find_sampling(p)};
	for (uint32_t i = 0; i < p->types[0].samples.n && r == 0; i++) {
		uint32_t row = 0;

		a->total = profile_sum(a->total, p->types[0].samples.items[i].value);
		r = add(a, &ix, p, &p->types[0].samples.items[i], &row);
		if (ret_rows)
			ret_rows[i] = row;
	}
	hash_index_deinit(&ix);
	return r;
}

void aggregate_deinit(struct aggregate *a)
{
	array_deinit(&a->rows);
}
