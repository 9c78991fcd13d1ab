/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "src/render/by-thread.h"

static int compare_times(const void *a, const void *b, void *ctx)
{
	const struct profile *p = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_sample *samples = p->types[0].samples.items;
	uint64_t x = samples[i].time_unix_ns, y = samples[j].time_unix_ns;

	return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

/* A thread with differently labelled samples has several rows, but is one thread. */
static int find_same(struct by_thread *b, const struct profile *p)
{
	struct hash_index ix = HASH_INDEX_INIT;
	int r = 0;

	for (uint32_t i = 0; i < p->threads.n && r == 0; i++) {
		const struct profile_thread *t = &p->threads.items[i], *u;
		uint64_t hash = hash_combine((uint64_t)t->process << 32 | t->tid, t->name);
		uint32_t slot = hash_index_first(&ix, hash), row;

		while ((row = hash_index_row(&ix, slot)) != HASH_INDEX_NONE) {
			u = &p->threads.items[row];
			if (u->process == t->process && u->tid == t->tid && u->name == t->name)
				break;
			slot = hash_index_next(&ix, slot);
		}
		b->same[i] = row != HASH_INDEX_NONE ? row : i;
		if (row == HASH_INDEX_NONE)
			r = hash_index_add(&ix, hash, i);
	}
	hash_index_deinit(&ix);
	return r;
}

int by_thread_build(struct by_thread *b, const struct profile *p)
{
	const struct profile_sample *samples = p->types[0].samples.items;
	uint32_t n = p->types[0].samples.n, *at;

	b->order = malloc(((size_t)n + 1) * sizeof(*b->order));
	b->first = calloc((size_t)p->threads.n + 1, sizeof(*b->first));
	b->same = calloc((size_t)p->threads.n + 1, sizeof(*b->same));
	at = calloc((size_t)p->threads.n + 1, sizeof(*at));
	if (!b->order || !b->first || !b->same || !at || find_same(b, p) < 0) {
		free(at);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		b->first[b->same[samples[i].thread] + 1]++;
	for (uint32_t t = 0; t < p->threads.n; t++) {
		b->first[t + 1] += b->first[t];
		at[t] = b->first[t];
	}
	for (uint32_t i = 0; i < n; i++)
		b->order[at[b->same[samples[i].thread]]++] = i;
	free(at);
	for (uint32_t t = 0; t < p->threads.n; t++)
		qsort_r(b->order + b->first[t], b->first[t + 1] - b->first[t], sizeof(*b->order),
			compare_times, (void *)p);
	return 0;
}

void by_thread_deinit(struct by_thread *b)
{
	free(b->order);
	free(b->first);
	free(b->same);
	*b = (struct by_thread){.order = NULL};
}
