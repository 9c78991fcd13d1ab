/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/block-proofs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int block_proofs_new(struct block_proofs **ret, struct switches *s)
{
	struct block_proofs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->switches = s;
	p->first_ns = UINT64_MAX;
	*ret = p;
	return 0;
}

struct block_proofs *block_proofs_free(struct block_proofs *p)
{
	for (uint32_t i = 0; p && i < p->n; i++)
		free(p->waiting[i].stack);
	free(p);
	return NULL;
}

static bool add(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
		const struct switch_stack *stack, bool late)
{
	size_t size = sizeof(*stack) +
		      ((size_t)stack->n_kernel + stack->n_user) * sizeof(*stack->addresses);
	struct switch_stack *copy = p->n < BLOCK_PROOFS_MAX ? malloc(size) : NULL;

	if (!copy)
		return false;
	memcpy(copy, stack, size);
	p->waiting[p->n++] = (struct waiting_proof){*block, read_ns, copy, late};
	p->first_ns = read_ns < p->first_ns ? read_ns : p->first_ns;
	return true;
}

bool block_proofs_add(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
		      const struct switch_stack *stack)
{
	return add(p, block, read_ns, stack, false);
}

bool block_proofs_add_late(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
			   const struct switch_stack *stack)
{
	return add(p, block, read_ns, stack, true);
}

static bool settle(struct block_proofs *p, const struct waiting_proof *w)
{
	if (!w->late)
		return switches_better_stack(p->switches, &w->block, w->stack);
	if (switches_lasted(p->switches, &w->block, w->read_ns) &&
	    switches_wants(p->switches, &w->block, w->stack->alone))
		switches_stack(p->switches, &w->block, w->stack);
	return true;
}

uint32_t block_proofs_judge(struct block_proofs *p, uint64_t time_ns)
{
	uint32_t n_kept = 0, n_refuted = 0;

	if (!block_proofs_are_due(p, time_ns))
		return 0;
	p->first_ns = UINT64_MAX;
	for (uint32_t i = 0; i < p->n; i++) {
		struct waiting_proof *w = &p->waiting[i];

		if (w->read_ns >= time_ns) {
			p->first_ns = w->read_ns < p->first_ns ? w->read_ns : p->first_ns;
			p->waiting[n_kept++] = *w;
			continue;
		}
		n_refuted += !settle(p, w);
		free(w->stack);
	}
	p->n = n_kept;
	return n_refuted;
}
