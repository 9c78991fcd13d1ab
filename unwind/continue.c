/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continues a walk beyond the end of the stack copy.
 *
 * The kernel made its callchain by following frame pointers through the whole stack, not the copy.
 * It gives the return addresses that it found, but not their stack addresses. So we follow the
 * frame pointers again through the copy, as the kernel did, to the frame where the walk was cut.
 * The two agree if each return address is the same and we meet the frame pointer of the cut frame.
 * The next address of the chain is then the return address of the cut frame, if the frame's rule
 * says that the frame pointer points at the saved frame pointer with the return address in the next
 * word. We go on as long as the rule of each function says so, and stop at the first that does not:
 * no frame is guessed, and none is skipped.
 *
 * The same finds callers on another stack, which is never copied: those of a goroutine that has
 * switched to its thread's stack (systemstack) or to C (asmcgocall). Go's runtime deliberately
 * keeps the frame pointer at the frame record of the function that switched, on the old stack.
 */
#include "unwind/internal.h"

/* Does fp point at { caller's fp, return address }, or where the processor's ABI has it? */
static bool is_frame_record(struct rule rule, bool called)
{
	int ra_words = ARCH_HAS_LR ? rule.ra_words : -1;

	if (!ARCH_HAS_LR && rule.kind == RULE_SP)
		return called && rule.ra_words == RULE_RA_BEHIND_FP;
	if (!ARCH_HAS_LR && rule.kind == RULE_OTHER_STACK)
		return called && rule.cfa_offset >= 16; /* it has a frame */
	if (ARCH_HAS_LR && ra_words == RULE_RA_BEHIND_FP)
		ra_words = rule.fp_words + 1;
	return rule.kind == RULE_FP && rule.fp_words != 0 && ra_words == rule.fp_words + 1 &&
	       rule.cfa_offset + rule.fp_words * 8 == ARCH_FP_TO_PAIR;
}

/* Finds the chain entry that is the cut frame's own address; false: chain and walk disagree. */
static bool find_cut(const struct unwind_cut *cut, const uint64_t *chain, size_t n_chain,
		     size_t *ret)
{
	const uint64_t fp_bit = UNWIND_REG_BIT(ARCH_REG_FP);
	struct stack_copy stack = cut->stack;
	uint64_t fp = cut->first.r[ARCH_REG_FP], next, pair, ra;

	stack.missing = NULL;
	if (!(cut->first.valid & fp_bit) || !(cut->last.valid & fp_bit) || n_chain == 0 ||
	    chain[0] != cut->first.r[ARCH_REG_PC])
		return false;
	for (size_t i = 0; i < n_chain; i++) {
		if (fp == cut->last.r[ARCH_REG_FP]) {
			*ret = i;
			return true;
		}
		pair = fp + (uint64_t)(int64_t)ARCH_FP_TO_PAIR;
		if (i + 1 == n_chain || !stack_read(&stack, pair, &next) ||
		    !stack_read(&stack, pair + 8, &ra) ||
		    (ra & ARCH_CODE_MASK) != (chain[i + 1] & ARCH_CODE_MASK))
			return false;
		fp = next;
	}
	return false;
}

enum unwind_outcome unwind_continue(struct unwinder *u, const uint64_t *chain, size_t n_chain,
				    unwind_find_fn find, void *ctx, struct unwind_frame *frames,
				    size_t max_frames, size_t *n)
{
	bool called = u->cut.called;
	struct unwind_mapping m;
	uint64_t addr, ra;
	struct rule rule;
	size_t i;

	if (*n == 0 || !find_cut(&u->cut, chain, n_chain, &i))
		return UNWIND_TRUNCATED;
	addr = frames[*n - 1].address;
	while (find(ctx, addr, &m)) {
		rule = walk_rule(u, &m, addr);
		if (rule.kind == RULE_END)
			return UNWIND_COMPLETE;
		if (!is_frame_record(rule, called) || ++i == n_chain)
			return UNWIND_TRUNCATED;
		called = true;
		ra = chain[i] & ARCH_CODE_MASK;
		if (ra == 0)
			return UNWIND_COMPLETE;
		addr = ra - 1;
		if (!find(ctx, addr, &m))
			break;
		if (*n == max_frames)
			return UNWIND_TOO_DEEP;
		frames[(*n)++] = (struct unwind_frame){addr, m.bias, 0, 0, m.tag};
	}
	return UNWIND_TRUNCATED;
}
