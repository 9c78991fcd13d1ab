/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/join.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "src/profiler/walk.h"
#include "src/sample/stack-size.h"

#define MAX_KERNEL_FRAMES SAMPLE_MAX_KERNEL_FRAMES
/* Further above the stack pointer than frames are large. */
#define OTHER_STACK_BYTES (UINT64_C(1) << 20)

static void keep(struct attribution *a, uint64_t address)
{
	if (a->n_kept < ATTRIBUTION_MAX_KEPT(a))
		a->kept[a->n_kept++] = address;
}

/* The i-th frame of the walk, or what a runtime says that it is. */
static uint32_t add_walked(struct attribution *a, uint32_t n, size_t i)
{
	const struct unwind_frame *f = &a->walked[i];
	const struct runtime_frame *frames = NULL;
	size_t n_frames = 0;

	if (a->runtimes)
		frames = runtimes_frames(a->runtimes, i, &n_frames);
	for (size_t k = 0; k < n_frames; k++) {
		a->frames[n++] = join_runtime_row(&a->profile, &frames[k]);
		if (a->keeping)
			keep(a, known_frames_put(a->known_frames, &frames[k]));
	}
	if (n_frames == 0) {
		a->frames[n++] = profile_add_frame(
			&a->profile, f->tag == UINT32_MAX ? attribution_unknown_row(a) : f->tag,
			f->address - f->bias);
		keep(a, f->address);
	}
	return n;
}

static uint32_t add_marker(struct attribution *a, uint32_t n, enum profile_marker marker,
			   enum profile_counter counter)
{
	a->counters[counter]++;
	a->frames[n] = attribution_marker(a, marker);
	return n + 1;
}

/* ---- The user's frames ---- */

static const struct {
	enum profile_marker marker;
	enum profile_counter counter;
} outcomes[UNWIND_N_OUTCOMES] = {
	[UNWIND_TRUNCATED] = {PROFILE_MARKER_TRUNCATED, PROFILE_STACKS_TRUNCATED},
	[UNWIND_NO_MAPPING] = {PROFILE_MARKER_NO_MAPPING, PROFILE_STACKS_NO_MAPPING},
	[UNWIND_NO_FILE] = {PROFILE_MARKER_NO_FILE, PROFILE_STACKS_NO_FILE},
	[UNWIND_NO_CFI] = {PROFILE_MARKER_NO_CFI, PROFILE_STACKS_NO_CFI},
	[UNWIND_BAD_CFI] = {PROFILE_MARKER_BAD_CFI, PROFILE_STACKS_BAD_CFI},
	[UNWIND_NO_PROGRESS] = {PROFILE_MARKER_NO_PROGRESS, PROFILE_STACKS_NO_PROGRESS},
	[UNWIND_TOO_DEEP] = {PROFILE_MARKER_TOO_DEEP, PROFILE_STACKS_TOO_DEEP},
};

/* Counts how much of the copy the stack needs, for the choice of its size. */
static void count_reach(struct attribution *a, enum unwind_outcome outcome, size_t n_frames)
{
	static const uint32_t frames[] = {8, 16, 32, 64, 128};
	uint64_t *c = a->counters, kib = unwinder_stats(a->unwinder)->last_depth_bytes >> 10;
	size_t i = 0;

	if (outcome == UNWIND_COMPLETE)
		c[kib < 8    ? PROFILE_STACKS_WITHIN_8K
		  : kib < 16 ? PROFILE_STACKS_WITHIN_16K
		  : kib < 32 ? PROFILE_STACKS_WITHIN_32K
			     : PROFILE_STACKS_WITHIN_64K]++;
	while (i < ARRAY_SIZE(frames) && n_frames > frames[i])
		i++;
	c[PROFILE_STACKS_TO_8_FRAMES + i]++;
}

/*
 * A copy that ends too early is not the only reason: Go's systemstack, Rust's stacker and signal
 * handlers leave a stack for another, which lies anywhere. And the kernel stops copying at the
 * first page that is not in memory.
 */
static enum profile_counter why_truncated(const struct attribution *a, const struct record *r)
{
	if (unwinder_stats(a->unwinder)->last_missing_bytes >= OTHER_STACK_BYTES)
		return PROFILE_STACKS_LEFT;
	return r->sample.n_stack < r->sample.max_stack ? PROFILE_STACKS_UNREADABLE
						       : PROFILE_STACKS_TRUNCATED;
}

/* Beyond the largest size no copy would have helped. */
static void tell_stack_size(struct attribution *a, enum unwind_outcome outcome,
			    const struct record *r)
{
	const struct unwind_stats *u = unwinder_stats(a->unwinder);

	if (a->stack_size)
		stack_size_count(a->stack_size, r->sample.max_stack, u->last_depth_bytes,
				 outcome == UNWIND_TRUNCATED &&
					 r->sample.n_stack == r->sample.max_stack &&
					 u->last_missing_bytes < STACK_SIZE_LARGEST);
}

static void read_regs(const struct attribution *a, const struct record *r, struct unwind_regs *ret)
{
	struct unwind_regs trusted;

	unwind_regs_from_perf(r->sample.user_regs, a->regs_mask, ret);
	if (r->sample.user_regs_valid != a->regs_mask) {
		/* Only the valid bits of this second reading count: they are in DWARF's order. */
		unwind_regs_from_perf(r->sample.user_regs, r->sample.user_regs_valid & a->regs_mask,
				      &trusted);
		ret->valid &= trusted.valid;
	}
}

/* A frame of which nothing else is known. */
static uint32_t add_found(struct attribution *a, uint32_t n, uint64_t address,
			  const struct unwind_mapping *m)
{
	uint32_t module = m ? m->tag : attribution_unknown_row(a);
	uint64_t bias = m ? m->bias : 0;

	a->walked[a->n_walked++] = (struct unwind_frame){
		.address = address, .bias = bias, .tag = m ? m->tag : UINT32_MAX};
	keep(a, address);
	a->frames[n] = profile_add_frame(&a->profile, module, address - bias);
	return n + 1;
}

uint32_t attribution_add_address(struct attribution *a, uint32_t n, uint64_t address)
{
	struct unwind_mapping m;

	return add_found(a, n, address,
			 a->process && attribution_find_mapping(a, address, &m) ? &m : NULL);
}

/*
 * The frames that the kernel found by following frame pointers. It does not say whether it reached
 * the thread's entry, so there is no marker and no count; code without frame pointers is missing.
 */
static uint32_t add_user_chain(struct attribution *a, const struct record *r, uint32_t n)
{
	uint64_t n_chain = r->sample.n_user_chain;

	if (!n_chain)
		return add_marker(a, n, PROFILE_MARKER_NO_USER_REGS, PROFILE_STACKS_NO_REGS);
	for (uint64_t i = 0; i < n_chain && i < a->max_frames; i++)
		n = attribution_add_address(a, n, r->sample.user_chain[i] - (i > 0));
	return n;
}

/* Only 64-bit stacks can be walked. The program counter is known in any case. */
static uint32_t add_32_bit(struct attribution *a, const struct record *r, uint32_t n)
{
	struct unwind_regs regs = {.valid = 0};

	if (r->sample.user_regs)
		read_regs(a, r, &regs);
	a->counters[PROFILE_USER_STACKS]++;
	if (regs.valid & UNWIND_REG_BIT(UNWIND_REG_PC))
		n = attribution_add_address(a, n, regs.r[UNWIND_REG_PC]);
	return add_marker(a, n, PROFILE_MARKER_32_BIT, PROFILE_STACKS_32_BIT);
}

/* Without a reliable stack pointer the program counter may be known, but not the callers. */
static uint32_t add_without_stack(struct attribution *a, const struct unwind_regs *regs, uint32_t n)
{
	struct unwind_mapping m;

	if ((regs->valid & UNWIND_REG_BIT(UNWIND_REG_PC)) &&
	    attribution_find_mapping(a, regs->r[UNWIND_REG_PC], &m))
		n = add_found(a, n, regs->r[UNWIND_REG_PC], &m);
	return add_marker(a, n, PROFILE_MARKER_NO_USER_REGS, PROFILE_STACKS_NO_REGS);
}

/* Why the walk ended, or what it did without. */
static uint32_t add_walk_marker(struct attribution *a, const struct record *r, uint32_t n,
				enum unwind_outcome outcome)
{
	enum profile_marker its = a->runtimes ? runtimes_marker(a->runtimes) : PROFILE_N_MARKERS;

	if (its != PROFILE_N_MARKERS)
		return add_marker(a, n, its,
				  outcome == UNWIND_COMPLETE ? PROFILE_STACKS_RUNTIME_LATE
							     : PROFILE_STACKS_UNPROVEN);
	if (outcome == UNWIND_TRUNCATED)
		return add_marker(a, n, PROFILE_MARKER_TRUNCATED, why_truncated(a, r));
	if (outcome != UNWIND_COMPLETE)
		return add_marker(a, n, outcomes[outcome].marker, outcomes[outcome].counter);
	return n;
}

/* Trampolines have the names of the functions behind them, which the interpreter's reader has. */
static bool is_named_elsewhere(struct attribution *a, size_t i)
{
	const struct process_state *s = a->process->user;

	return s && s->interpreter && a->runtimes && runtimes_is_nothing(a->runtimes, i);
}

static uint32_t add_user_frames(struct attribution *a, const struct record *r, uint32_t n)
{
	struct unwind_regs regs = {.valid = 0};
	enum unwind_outcome outcome;
	size_t n_walked = 0, n_copied;

	if (a->frame_pointers)
		return add_user_chain(a, r, n);
	if (r->sample.user_abi == PERF_SAMPLE_REGS_ABI_32)
		return add_32_bit(a, r, n);
	if (r->sample.user_abi == PERF_SAMPLE_REGS_ABI_64 && r->sample.user_regs)
		read_regs(a, r, &regs);
	if (!(regs.valid & UNWIND_REG_BIT(UNWIND_REG_SP)))
		return add_without_stack(a, &regs, n);
	a->counters[PROFILE_USER_STACKS]++;
	code_unwinding_begin(a->code);
	if (a->runtimes)
		runtimes_begin(a->runtimes);
	outcome = unwind_walk(a->unwinder, &regs, r->sample.stack, r->sample.n_stack,
			      attribution_find_mapping, a, a->walked, a->max_frames, &n_walked);
	if (a->runtimes)
		runtimes_end(a->runtimes);
	tell_stack_size(a, outcome, r);
	n_copied = n_walked;
	if (outcome == UNWIND_TRUNCATED && r->sample.n_user_chain > 0)
		outcome = unwind_continue(a->unwinder, r->sample.user_chain, r->sample.n_user_chain,
					  attribution_find_mapping, a, a->walked, a->max_frames,
					  &n_walked);
	a->counters[PROFILE_STACKS_CONTINUED] += n_walked > n_copied;
	for (size_t i = 0; i < n_walked; i++) {
		if (is_named_elsewhere(a, i))
			continue;
		n = add_walked(a, n, i);
		a->walked[a->n_walked++] = a->walked[i];
	}
	count_reach(a, n_walked > n_copied ? UNWIND_TRUNCATED : outcome, n_walked);
	return add_walk_marker(a, r, n, outcome);
}

static uint32_t add_kernel_frames(struct attribution *a, const struct record *r)
{
	uint32_t row = PROFILE_NONE, n = 0;

	for (uint64_t i = 0; i < r->sample.n_kernel && n < MAX_KERNEL_FRAMES; i++) {
		if (row == PROFILE_NONE)
			row = attribution_kernel_row(a);
		/* All but the innermost are return addresses. */
		a->frames[n++] = profile_add_frame(&a->profile, row, r->sample.kernel[i] - (i > 0));
	}
	return n;
}

/*
 * Kernel threads have no user side; neither has a task whose memory is being torn down or replaced
 * (exit, execve): its registers speak of an address space that is gone, and nothing could be copied
 * from its stack.
 */
static bool has_user_side(const struct host_process *p, const struct record *r, uint32_t n_kernel)
{
	if (!p || p->is_kernel)
		return false;
	if (n_kernel == 0)
		return true;
	if (r->sample.n_user_chain > 0)
		return true;
	return r->sample.user_abi != PERF_SAMPLE_REGS_ABI_NONE && r->sample.n_stack > 0;
}

uint32_t attribution_walk(struct attribution *a, const struct record *r)
{
	uint32_t n = add_kernel_frames(a, r);

	a->n_walked = a->n_kept = 0;
	if (attribution_is_out_of_sight(r)) {
		a->counters[PROFILE_USER_STACKS]++;
		return add_marker(a, n, PROFILE_MARKER_NO_MAPPING, PROFILE_STACKS_NO_MAPPING);
	}
	if (!has_user_side(a->process, r, n))
		return n;
	/* A block may be the first that this window has of the process: its compiled code gets a
	 * row of this window. */
	(void)attribution_process_row(a, a->process);
	return add_user_frames(a, r, n);
}

uint32_t attribution_walk_to_keep(struct attribution *a, const struct record *r)
{
	uint32_t n;

	a->keeping = true;
	n = attribution_walk(a, r);
	a->keeping = false;
	return n;
}
