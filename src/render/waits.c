/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "src/render/waits.h"

/* What the outermost frame of the stack says. */
static enum profile_marker reason_of(const struct profile *p, uint32_t stack)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);
	const struct profile_frame *f = n ? &p->frames.items[frames[n - 1]] : NULL;

	if (!f || p->modules.items[f->module].kind != PROFILE_MODULE_MARKER ||
	    (!profile_is_wait(p, frames[n - 1]) && f->address != PROFILE_MARKER_NOT_SEEN))
		return PROFILE_MARKER_WAIT;
	return (enum profile_marker)f->address;
}

static int compare_sums(const void *a, const void *b)
{
	const struct wait_sum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->marker > y->marker) - (x->marker < y->marker);
}

uint32_t waits_by_reason(const struct profile *p, struct wait_sum ret[WAITS_MAX_REASONS])
{
	const struct profile_type *t = &p->types[0];
	struct wait_sum sums[PROFILE_N_MARKERS] = {{0}};
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->samples.n; i++) {
		struct wait_sum *sum = &sums[reason_of(p, t->samples.items[i].stack)];

		sum->ns = profile_sum(sum->ns, t->samples.items[i].value);
		sum->n += t->samples.items[i].n;
	}
	for (uint32_t i = 0; i < PROFILE_N_MARKERS; i++) {
		sums[i].marker = (enum profile_marker)i;
		if (sums[i].ns)
			ret[n++] = sums[i];
	}
	qsort(ret, n, sizeof(*ret), compare_sums);
	return n;
}
