/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of blocked threads that the table of waits keeps, and the locks that they show. */
#include "src/profiler/attribute-internal.h"
#include "src/profiler/block-proofs.h"
#include "src/profiler/blocked-call.h"
#include "src/profiler/lock-places.h"
#include "src/profiler/off-cpu-internal.h"
#include "src/profiler/second-source.h"

/* A guess, for it may be another call's argument: the kernel's names decide. */
static enum profile_marker guess_reason(const struct off_cpu *o, const struct record *r)
{
	uint64_t operation;

	if (r->sample.n_kernel == 0 ||
	    !sample_second_argument(&o->events[r->index].options, r, &operation))
		return PROFILE_MARKER_WAIT;
	return futex_call_reason(operation);
}

/* What a walk left in the attribution, as addresses that outlive the window. */
void off_cpu_keep_stack(struct off_cpu *o, const struct record *r, enum profile_marker marker,
			enum profile_marker reason)
{
	const struct attribution *a = o->a;
	struct switch_stack *s = o->scratch;
	const struct process_state *p = a->process ? a->process->user : NULL;
	uint32_t n_kernel = (uint32_t)r->sample.n_kernel;

	*s = (struct switch_stack){.n_kernel = n_kernel,
				   .n_user = a->n_kept,
				   .reason = reason,
				   .marker = marker,
				   .varies = p && p->blocked};
	for (uint32_t i = 0; i < n_kernel; i++)
		s->addresses[i] = r->sample.kernel[i] - (i > 0);
	for (uint32_t i = 0; i < a->n_kept; i++)
		s->addresses[n_kernel + i] = a->kept[i];
}

/* How its markers are counted: one that lacks native frames is for that. */
static void count_marker(struct attribution *a, enum profile_marker marker)
{
	a->counters[PROFILE_STACKS_RUNTIME_LATE] += marker == PROFILE_MARKER_RUNTIME_LATE;
	a->counters[PROFILE_STACKS_RUNTIME_UNREAD] += marker == PROFILE_MARKER_RUNTIME_UNREAD;
	a->counters[PROFILE_STACKS_UNPROVEN] += marker == PROFILE_MARKER_RUNTIME_UNPROVEN;
}

/* The stack that the walk has left, and, if an interpreter has frames for it, once more with these:
 * that counts if the thread turns out to have been blocked while they were read. */
void off_cpu_tell_stack(struct off_cpu *o, const struct record *r, const struct switch_out *out,
			uint32_t n)
{
	enum profile_marker marker, reason = guess_reason(o, r);
	struct attribution *a = o->a;
	struct runtime_frames frames;
	bool has_frames = attribution_ask_to_keep(a, a->source, r, n, &frames, &marker);

	off_cpu_keep_stack(o, r, marker, reason);
	switches_stack(o->switches, out, o->scratch);
	if (has_frames) {
		marker = attribution_join_kept(a, &frames, marker);
		off_cpu_keep_stack(o, r, marker, reason);
		if (block_proofs_add(o->proofs, out, frames.read_ns, o->scratch))
			return;
		marker = PROFILE_MARKER_RUNTIME_LATE;
	}
	count_marker(a, marker);
}

void off_cpu_judge_proofs(struct off_cpu *o, uint64_t time_ns)
{
	o->a->profile.types[o->blocks].counters[PROFILE_STACKS_RUNTIME_LATE] +=
		block_proofs_judge(o->proofs, time_ns);
}

/* What the block whose stack was just kept waits for. */
void off_cpu_see_lock(struct off_cpu *o, const struct switch_out *block)
{
	uint32_t reason = o->scratch->reason;

	if (o->locks && block->object && o->a->process && off_cpu_is_futex(reason))
		lock_places_see(o->locks, o->a->process, block->object,
				reason == PROFILE_MARKER_WAIT_LOCK ? block->ip : 0);
}
