/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/attribute-internal.h"
#include "src/profiler/join.h"
#include "src/profiler/known-stacks.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/walk.h"

/* A frame of a runtime, under its number. */
static uint32_t add_number(struct attribution *a, uint32_t n, uint64_t number)
{
	struct runtime_frame f;

	a->frames[n] = known_frames_get(a->known_frames, number, &f)
			       ? join_runtime_row(&a->profile, &f)
			       : profile_add_frame(&a->profile, attribution_unknown_row(a), 0);
	return n + 1;
}

/* Leaf first: the kernel's, the user's, and what is missing. */
static uint32_t add_known(struct attribution *a, const struct switch_stack *known, uint32_t object)
{
	uint32_t n = 0, row = known->n_kernel ? attribution_kernel_row(a) : PROFILE_NONE;

	while (n < known->n_kernel) {
		a->frames[n] = profile_add_frame(&a->profile, row, known->addresses[n]);
		n++;
	}
	a->n_walked = a->n_kept = 0;
	for (uint32_t i = 0; i < known->n_user; i++) {
		uint64_t address = known->addresses[known->n_kernel + i];

		n = known_frames_is_number(address) ? add_number(a, n, address)
						    : attribution_add_address(a, n, address);
	}
	if (known->marker < PROFILE_N_MARKERS)
		a->frames[n++] = attribution_marker(a, known->marker);
	if (object != PROFILE_NONE)
		a->frames[n++] = object;
	if (known->reason < PROFILE_N_MARKERS)
		a->frames[n++] = attribution_marker(a, known->reason);
	return n;
}

uint32_t attribution_waiting_stack(struct attribution *a, const struct switch_stack *known,
				   uint32_t object)
{
	static const struct switch_stack not_seen = {.marker = PROFILE_MARKER_NOT_SEEN,
						     .reason = PROFILE_N_MARKERS},
					 lock_alone = {.marker = PROFILE_MARKER_NOT_SEEN,
						       .reason = PROFILE_MARKER_WAIT_LOCK};
	uint32_t n;

	if (!known)
		known = object == PROFILE_NONE ? &not_seen : &lock_alone;
	n = add_known(a, known, object);
	for (uint32_t i = 0; i < n; i++) {
		if (a->frames[i] == PROFILE_NONE)
			return PROFILE_NONE;
	}
	return profile_add_stack(&a->profile, a->frames, n, known->n_kernel);
}

uint32_t attribution_known_stack(struct attribution *a, const struct switch_stack *known)
{
	return attribution_waiting_stack(a, known, PROFILE_NONE);
}
