/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/residents.h"

uint64_t residents_us(const struct profile *p, uint64_t time_unix_ns)
{
	if (time_unix_ns < p->start_unix_ns)
		return 0;
	if (time_unix_ns > p->end_unix_ns)
		time_unix_ns = p->end_unix_ns;
	return (time_unix_ns - p->start_unix_ns) / 1000;
}

static int compare_identities(const struct profile_process *x, const struct profile_process *y)
{
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_time_unix_ns > y->start_time_unix_ns) -
	       (x->start_time_unix_ns < y->start_time_unix_ns);
}

static int compare_points(const void *a, const void *b, void *ctx)
{
	const struct profile_resident *x = a, *y = b;
	const struct profile *p = ctx;
	int order = compare_identities(&p->processes.items[x->process],
				       &p->processes.items[y->process]);

	return order ? order
		     : (x->time_unix_ns > y->time_unix_ns) - (x->time_unix_ns < y->time_unix_ns);
}

static int compare_sums(const void *a, const void *b)
{
	const struct resident_sum *x = a, *y = b;

	if (x->most != y->most)
		return x->most > y->most ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void add_point(struct resident_sum *s, const struct profile_resident *point)
{
	s->process = point->process;
	s->n++;
	s->ended = point->bytes == 0;
	if (s->ended || point->bytes == PROFILE_RESIDENT_UNKNOWN)
		return;
	if (!s->begin)
		s->begin = point->bytes;
	s->end = point->bytes;
	if (point->bytes > s->most)
		s->most = point->bytes;
}

int residents_by_process(const struct profile *p, struct resident_sums *ret)
{
	const struct profile_process *of = p->processes.items;
	uint32_t n = p->residents.n;

	*ret = (struct resident_sums){.n = 0};
	if (n == 0)
		return 0;
	ret->points = malloc(n * sizeof(*ret->points));
	ret->items = calloc(n, sizeof(*ret->items));
	if (!ret->points || !ret->items)
		return -ENOMEM;
	memcpy(ret->points, p->residents.items, n * sizeof(*ret->points));
	qsort_r(ret->points, n, sizeof(*ret->points), compare_points, (void *)(uintptr_t)p);
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_resident *point = &ret->points[i];

		if (i == 0 || compare_identities(&of[point[-1].process], &of[point->process]) != 0)
			ret->items[ret->n++].first = i;
		add_point(&ret->items[ret->n - 1], point);
	}
	qsort(ret->items, ret->n, sizeof(*ret->items), compare_sums);
	return 0;
}

void residents_free_sums(struct resident_sums *s)
{
	free(s->items);
	free(s->points);
}
