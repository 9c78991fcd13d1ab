/* SPDX-License-Identifier: Apache-2.0 */
#include "src/symbolizer/arrivals.h"

#include <string.h>

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t arrivals_samples_at(const struct sample_place *p)
{
	uint64_t n = 0;

	for (int i = 0; i < STATUS_MAX_EVENTS; i++)
		n += p->events[i].samples;
	return n;
}

static void find_gap(const struct place_of_event *from, const struct place_of_event *to,
		     uint64_t n_dropped, struct arrivals_gap *ret)
{
	uint64_t wanted;

	*ret = (struct arrivals_gap){
		.samples = above(to->samples, from->samples),
		.filtered = above(to->filtered, from->filtered),
		.lost = above(to->lost, from->lost),
	};
	wanted = above(ret->samples, ret->filtered);
	ret->dropped = wanted < n_dropped ? wanted : n_dropped;
	ret->died = wanted - ret->dropped;
}

void arrivals_new_profiler(struct arrivals *a)
{
	memset(a->n_dropped, 0, sizeof(a->n_dropped));
}

bool arrivals_window(struct arrivals *a, const struct message *m, struct arrivals_gap *ret)
{
	const struct sample_place *begin = &m->window.begin, *end = &m->window.end;
	uint64_t expected = arrivals_samples_at(&a->expected);

	memset(ret, 0, STATUS_MAX_EVENTS * sizeof(*ret));
	if (arrivals_samples_at(begin) < expected && arrivals_samples_at(end) <= expected)
		return false;
	for (int i = 0; i < STATUS_MAX_EVENTS; i++)
		find_gap(&a->expected.events[i], &begin->events[i],
			 above(m->window.n_dropped[i], a->n_dropped[i]), &ret[i]);
	memcpy(a->n_dropped, m->window.n_dropped, sizeof(a->n_dropped));
	a->expected = *end;
	return true;
}

uint64_t arrivals_n_samples(const struct arrivals *a)
{
	return arrivals_samples_at(&a->expected);
}

void arrivals_end(struct arrivals *a, const struct sample_place *end, struct arrivals_gap *ret)
{
	for (int i = 0; i < STATUS_MAX_EVENTS; i++)
		find_gap(&a->expected.events[i], &end->events[i], 0, &ret[i]);
	a->expected = *end;
}
