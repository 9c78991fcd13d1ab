/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "src/symbolizer/wanted.h"

void wanted_free(struct wanted *w)
{
	free(w->uses);
	free(w->frames);
	free(w->first);
	free(w->modules);
	free(w->module_uses);
}

static void count_uses(const struct profile *p, uint32_t first_sample, uint32_t *uses)
{
	for (uint32_t type = 0; type < p->n_types; type++) {
		const struct profile_type *t = &p->types[type];

		for (uint32_t i = type == 0 ? first_sample : 0; i < t->samples.n; i++) {
			uint32_t n;
			const uint32_t *frames =
				profile_stack_frames(p, t->samples.items[i].stack, &n);

			for (uint32_t k = 0; k < n; k++)
				uses[frames[k]]++;
		}
	}
}

static int compare_uses(const void *a, const void *b, void *ctx)
{
	const uint64_t *uses = ctx;
	uint32_t m = *(const uint32_t *)a, o = *(const uint32_t *)b;

	if (uses[m] != uses[o])
		return uses[m] < uses[o] ? 1 : -1;
	return m < o ? -1 : m > o;
}

static bool is_wanted(const struct profile *p, const struct wanted *w, uint32_t frame)
{
	return w->uses[frame] && profile_wants_name(p, frame);
}

/* Groups by counting. */
static void group_by_module(const struct profile *p, struct wanted *w)
{
	for (uint32_t i = 0; i < p->frames.n; i++) {
		uint32_t module = p->frames.items[i].module;

		w->first[module + 2] += is_wanted(p, w, i);
		w->module_uses[module] += w->uses[i];
	}
	for (uint32_t m = 2; m <= p->modules.n + 1; m++)
		w->first[m] += w->first[m - 1];
	/* Shifted by one: filling moves each start to where the next one began. */
	for (uint32_t i = 0; i < p->frames.n; i++) {
		if (is_wanted(p, w, i))
			w->frames[w->first[p->frames.items[i].module + 1]++] = i;
	}
	for (uint32_t m = 0; m < p->modules.n; m++) {
		if (w->module_uses[m])
			w->modules[w->n_modules++] = m;
	}
}

bool wanted_find(struct wanted *w, const struct profile *p, uint32_t first_sample, bool by_uses)
{
	w->uses = calloc((size_t)p->frames.n + 1, sizeof(*w->uses));
	w->frames = calloc((size_t)p->frames.n + 1, sizeof(*w->frames));
	w->first = calloc((size_t)p->modules.n + 2, sizeof(*w->first));
	w->modules = calloc((size_t)p->modules.n + 1, sizeof(*w->modules));
	w->module_uses = calloc((size_t)p->modules.n + 1, sizeof(*w->module_uses));
	if (!w->uses || !w->frames || !w->first || !w->modules || !w->module_uses)
		return false;
	count_uses(p, first_sample, w->uses);
	group_by_module(p, w);
	if (by_uses)
		qsort_r(w->modules, w->n_modules, sizeof(*w->modules), compare_uses,
			w->module_uses);
	return true;
}
