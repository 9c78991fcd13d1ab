/* SPDX-License-Identifier: Apache-2.0 */
#include "src/render/pprof-types.h"

#include "util/cleanup.h"

void pprof_types_of(const struct profile *p, const char *asked, struct pprof_types *ret)
{
	const uint32_t heap[] = {
		profile_find_type(p, "alloc_objects"), profile_find_type(p, "alloc_space"),
		profile_find_type(p, "inuse_objects"), profile_find_type(p, "inuse_space")};
	bool has_heap = true;
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(heap); i++)
		has_heap &= heap[i] != PROFILE_NONE;
	for (uint32_t i = 0; i < p->n_types; i++) {
		bool is_heap = false;

		for (size_t k = 0; k < ARRAY_SIZE(heap); k++)
			is_heap |= has_heap && heap[k] == i;
		if (!is_heap)
			ret->order[n++] = i;
		/* All of them, where the first one of the profile stands. */
		for (size_t k = 0; has_heap && i == heap[1] && k < ARRAY_SIZE(heap); k++)
			ret->order[n++] = heap[k];
	}
	ret->of_heap = has_heap && heap[1] == 0;
	ret->shown = ret->of_heap ? heap[3] : profile_asked_type(p, asked);
}
