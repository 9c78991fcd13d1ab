/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/render/aggregate.h"
#include "util/hash.h"

static int64_t number_of(const struct profile_sample *s)
{
	return s->value < 0 ? -(int64_t)s->n : s->n;
}

static int add(struct aggregate *a, struct hash_index *ix, const struct profile_sample *s,
	       uint32_t *ret_row)
{
	uint64_t hash = hash_u64((uint64_t)s->thread << 32 | s->stack);
	uint32_t slot = hash_index_first(ix, hash), row;
	struct aggregate_row *r;

	while ((row = hash_index_row(ix, slot)) != HASH_INDEX_NONE) {
		r = &a->rows.items[row];
		if (r->thread == s->thread && r->stack == s->stack) {
			r->value = profile_sum(r->value, s->value);
			r->n += number_of(s);
			*ret_row = row;
			return 0;
		}
		slot = hash_index_next(ix, slot);
	}
	r = array_push(&a->rows);
	if (!r || hash_index_add(ix, hash, a->rows.n - 1) < 0)
		return -ENOMEM;
	*r = (struct aggregate_row){s->thread, s->stack, s->value, number_of(s)};
	*ret_row = a->rows.n - 1;
	return 0;
}

int aggregate_build(struct aggregate *a, const struct profile *p, uint32_t *ret_rows)
{
	struct hash_index ix = HASH_INDEX_INIT;
	int r = 0;

	*a = (struct aggregate){.rows = ARRAY_INIT(UINT32_MAX)};
	for (uint32_t i = 0; i < p->samples.n && r == 0; i++) {
		uint32_t row = 0;

		a->total = profile_sum(a->total, p->samples.items[i].value);
		r = add(a, &ix, &p->samples.items[i], &row);
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
