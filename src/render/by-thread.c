/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "src/render/by-thread.h"

static int compare_times(const void *a, const void *b, void *ctx)
{
	const struct profile *p = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint64_t x = p->samples.items[i].time_unix_ns, y = p->samples.items[j].time_unix_ns;

	return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

int by_thread_build(struct by_thread *b, const struct profile *p)
{
	uint32_t *at;

	b->order = malloc(((size_t)p->samples.n + 1) * sizeof(*b->order));
	b->first = calloc((size_t)p->threads.n + 1, sizeof(*b->first));
	at = calloc((size_t)p->threads.n + 1, sizeof(*at));
	if (!b->order || !b->first || !at) {
		free(at);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->samples.n; i++)
		b->first[p->samples.items[i].thread + 1]++;
	for (uint32_t t = 0; t < p->threads.n; t++) {
		b->first[t + 1] += b->first[t];
		at[t] = b->first[t];
	}
	for (uint32_t i = 0; i < p->samples.n; i++)
		b->order[at[p->samples.items[i].thread]++] = i;
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
	*b = (struct by_thread){NULL, NULL};
}
