/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that are read at the samples of their leader (`perf record -e '{cycles,faults}:S'`). The
 * other members take no samples: each sample of the leader has the values of all counters of the
 * group. The growth of a counter since the last read is the period of a sample of its own, at the
 * same place; without growth there is no sample. perf script does the same.
 */
#include <errno.h>

#include "src/perf-data/internal.h"

/* The last value of the counter with this id (and task); NULL: too many, or no memory. */
static struct perf_data_counter *find_counter(struct perf_data *d, uint64_t id, uint32_t tid)
{
	uint64_t hash = hash_combine(id, tid);
	uint32_t slot = hash_index_first(&d->counter_index, hash), row;
	struct perf_data_counter *c;

	while ((row = hash_index_row(&d->counter_index, slot)) != HASH_INDEX_NONE) {
		c = &d->counters.items[row];
		if (c->id == id && c->tid == tid)
			return c;
		slot = hash_index_next(&d->counter_index, slot);
	}
	c = array_push(&d->counters);
	if (!c)
		return NULL;
	*c = (struct perf_data_counter){id, 0, tid};
	if (hash_index_add(&d->counter_index, hash, d->counters.n - 1) < 0) {
		d->counters.n--;
		return NULL;
	}
	return c;
}

uint64_t perf_data_read_period(struct perf_data *d, const struct record *r)
{
	bool by_task = d->attrs.items[d->chosen].attr.inherit;
	uint64_t period = 0;

	for (uint64_t i = 0; i < r->sample.n_read; i++) {
		const uint64_t *value = r->sample.read + i * r->sample.read_words;
		struct perf_data_counter *c;

		if (perf_data_find_id(d, value[1]) != d->chosen)
			continue;
		c = find_counter(d, value[1], by_task ? r->tid : 0);
		if (!c)
			continue;
		period += value[0] > c->value ? value[0] - c->value : 0;
		c->value = value[0];
	}
	return period;
}
