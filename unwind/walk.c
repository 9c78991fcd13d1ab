/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most frames of a host come from few places, so a direct-mapped cache of 16-byte entries keyed by
 * (module, module-relative pc) is in front of the rows. It survives exec, ASLR and dlopen because
 * its key holds no process, and needs no generations because no module number is used twice. A hit
 * costs the load of the entry, an add, and the load of the return address.
 *
 * The compact walk tracks only pc, sp and fp. A rule that wants another register (ld.so's lazy
 * resolver: CFA = rbx + 32) in a deeper frame makes the walk start again, once, with full rules,
 * which restore every register that the callees saved. That is a few samples in ten thousand.
 *
 * Measured and rejected (captures of a mixed load, copies of 64 KiB cut to size, the walk of the
 * whole copy as the truth):
 *
 * - Continuing cut stacks with the kernel's chain of frame pointers wherever it agrees with the
 *   whole walk: it was wrong for more stacks than it was right for (184 of 518 against 159 with 8
 *   KiB), because it skips the next caller without a frame pointer. continue.c goes on only while
 *   each frame's rule says that its caller is at the frame pointer. The chain costs the kernel as
 *   much in every sample as 32 KiB more of a copy, so only the largest copies have it.
 * - Reusing the tail of the thread's last stack where a frame is the same. It would skip three
 *   frames of five. But without comparing the words above, 4 of 1000 such tails were stale; and
 *   comparing them costs the reads that make a first touch slow. Walking is a quarter of the
 *   profiler's work for a sample, interning the frames a fifteenth.
 */
#include "unwind/internal.h"

enum {
	MAX_SIGNAL_FRAMES = 16, /* in one walk: only they may switch to another stack */
	MAX_GUESS_DISTANCE = 8 * 1024 * 1024, /* a frame pointer is at most this far above sp */
	MAX_UNCOUNTED_BYTES = 64, /* of stack that Go's assembler uses without counting them */
};

struct memo {
	uint64_t start, size; /* size 0: empty */
	uint64_t base;	      /* runtime address of the module's base */
	struct unwind_mapping mapping;
};

struct walk {
	struct unwinder *u;
	struct stack_copy stack;
	unwind_find_fn find;
	void *ctx;
	struct unwind_frame *frames;
	size_t max_frames, n;
	struct memo memo[2];
	unsigned int current; /* the memo used last */
	bool full;
	bool guessed; /* the last step followed the frame pointer without CFI */
	bool lost_sp; /* only the address of this frame is known */
	bool foreign; /* the previous step was made by whoever knows a runtime's frames */
	unsigned int signal_frames;
	size_t n_certain; /* frames before what may be another stack's; 0: all are certain */
	enum unwind_outcome doubt;  /* the outcome if no more of them are */
	struct unwind_regs certain; /* the last one's sp, and fp if it is its own */
	uint64_t hits, misses;
};

/* Rules */

static __attribute__((noinline)) struct rule find_rule_slow(struct walk *w, struct unwind_module *m,
							    uint32_t rel)
{
	const struct row *row;
	struct row made;

	row = rows_find(m, rel);
	if (row)
		return row->rule;
	if (!work_exhausted(w->u)) {
		unwinder_tell_reading(w->u, m->owner, true);
		cfi_compile_row(m, m->base + rel, &made);
		unwinder_tell_reading(w->u, m->owner, false);
	}
	if (m->broken)
		return (struct rule){.kind = RULE_NONE};
	if (work_exhausted(w->u))
		return (struct rule){.kind = RULE_BAD};
	w->u->stats.rows_compiled++;
	rows_add(m, rel, &made);
	return made.rule;
}

static inline struct rule find_rule(struct walk *w, struct unwind_module *m, uint64_t rel)
{
	uint64_t key = (uint64_t)m->id << 32 | rel;
	uint64_t slot = (key * UINT64_C(0x9e3779b97f4a7c15)) >> w->u->cache_shift;
	struct cache_entry *e = &w->u->cache[slot];

	if (__builtin_expect(e->key == key, 1)) {
		w->hits++;
		return e->rule;
	}
	w->misses++;
	if (rel >= m->span)
		return (struct rule){.kind = RULE_GUESS_FP};
	struct rule rule = find_rule_slow(w, m, (uint32_t)rel);

	if (rule.kind != RULE_NONE && !work_exhausted(w->u))
		*e = (struct cache_entry){key, rule};
	return rule;
}

struct rule walk_rule(struct unwinder *u, const struct unwind_mapping *mapping, uint64_t addr)
{
	struct unwind_module *m = mapping->module;
	struct walk w = {.u = u};

	return m ? find_rule(&w, m, addr - mapping->bias - m->base)
		 : (struct rule){.kind = RULE_GUESS_FP};
}

static const struct full_rule *find_full(struct walk *w, struct unwind_module *m, uint32_t rel)
{
	uint64_t key = (uint64_t)m->id << 32 | rel;
	struct full_rule *f =
		&w->u->full[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (FULL_CACHE_ENTRIES - 1)];
	int r;

	if (f->module_id == m->id && rel >= f->start && rel < f->end)
		return f;
	if (work_exhausted(w->u))
		return NULL;
	unwinder_tell_reading(w->u, m->owner, true);
	r = cfi_compile_full(m, m->base + rel, f);
	unwinder_tell_reading(w->u, m->owner, false);
	return r == 0 ? f : NULL;
}

/* Mappings */

static __attribute__((noinline)) const struct memo *find_memo_slow(struct walk *w, uint64_t addr)
{
	unsigned int other = w->current ^ 1;
	struct memo *memo = &w->memo[other];
	struct unwind_mapping mapping = {.start = 0};

	if (addr - memo->start < memo->size) {
		w->current = other;
		return memo;
	}
	if (!w->find(w->ctx, addr, &mapping) || addr < mapping.start || addr >= mapping.end)
		return NULL;
	memo->start = mapping.start;
	memo->size = mapping.end - mapping.start;
	memo->base = mapping.bias + (mapping.module ? mapping.module->base : 0);
	memo->mapping = mapping;
	w->current = other;
	if (mapping.module)
		mapping.module->last_used = w->u->stats.walks;
	return memo;
}

static inline const struct memo *find_memo(struct walk *w, uint64_t addr)
{
	const struct memo *memo = &w->memo[w->current];

	if (addr - memo->start < memo->size)
		return memo;
	return find_memo_slow(w, addr);
}

/* Steps */

/*
 * Where fp and lr are saved at the bottom of a frame (aarch64), a step by the frame pointer alone
 * does not give the caller's sp. The caller's fp gives its CFA: it points at the slot where the
 * caller's rule says that fp is saved.
 */
static inline uint64_t cfa_by_sp(const struct walk *w, struct rule rule,
				 const struct unwind_regs *regs)
{
	if (ARCH_HAS_LR && ARCH_FP_TO_PAIR == 0 && w->guessed && rule.fp_words != 0)
		return regs->r[ARCH_REG_FP] - (uint64_t)((int64_t)rule.fp_words * 8);
	return regs->r[ARCH_REG_SP] + (uint64_t)(int64_t)rule.cfa_offset;
}

static inline enum step step_compact(const struct stack_copy *stack, struct rule rule, uint64_t cfa,
				     struct unwind_regs *regs)
{
	uint64_t sp = regs->r[ARCH_REG_SP], ra;

	if (ARCH_HAS_LR && rule.ra_words == RULE_RA_IN_LR) {
		/* Only in a frame that has not called: after a call lr is no longer valid. */
		if (!(regs->valid & UNWIND_REG_BIT(ARCH_REG_LR)))
			return STEP_NEEDS_REGS;
		if (cfa < sp)
			return STEP_NO_PROGRESS;
		ra = regs->r[ARCH_REG_LR];
	} else {
		int words = ARCH_HAS_LR ? rule.ra_words : -1;

		if (ARCH_HAS_LR && words == RULE_RA_BEHIND_FP)
			words = rule.fp_words + 1;
		/* The return address must lie at or above sp: each frame takes at least its word.
		 */
		if (cfa < sp + 8)
			return STEP_NO_PROGRESS;
		if (!stack_read(stack, cfa + (uint64_t)((int64_t)words * 8), &ra))
			return STEP_TRUNCATED;
	}
	if (rule.fp_words != 0) {
		uint64_t slot = cfa + (uint64_t)((int64_t)rule.fp_words * 8);

		/* Below sp: already popped, and the register holds the caller's value (step.c). On
		 * aarch64 Go saves it there. */
		if (slot >= (ARCH_HAS_LR ? stack->start : sp)) {
			if (!stack_read(stack, slot, &regs->r[ARCH_REG_FP]))
				return STEP_TRUNCATED;
			regs->valid |= UNWIND_REG_BIT(ARCH_REG_FP);
		}
	}
	regs->r[ARCH_REG_SP] = cfa;
	regs->r[ARCH_REG_PC] = ra & ARCH_CODE_MASK;
	regs->valid &= UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_FP) |
		       UNWIND_REG_BIT(ARCH_REG_PC);
	return STEP_OK;
}

static bool is_code(struct walk *w, uint64_t return_address)
{
	return return_address != 0 && find_memo(w, return_address - 1) != NULL;
}

/*
 * A function of riscv64 that calls none saves the frame pointer alone, where others have the return
 * address. That is in lr still.
 */
static bool is_leaf_record(struct walk *w, const struct unwind_regs *regs, uint64_t word)
{
	return ARCH_HAS_LR && ARCH_FP_TO_PAIR != 0 && regs->valid & UNWIND_REG_BIT(ARCH_REG_LR) &&
	       !is_code(w, word) && is_code(w, regs->r[ARCH_REG_LR]);
}

/*
 * No CFI: JIT code, hand-written assembly, a stripped program. We trust the frame pointer if it
 * points into the rest of the stack and an address of code follows. In a frame that was itself
 * reached by frame pointers, 0 marks the outermost frame (psABI).
 */
static enum unwind_outcome step_guess_fp(struct walk *w, struct unwind_regs *regs)
{
	uint64_t sp = regs->r[ARCH_REG_SP], fp = regs->r[ARCH_REG_FP], caller_fp, ra;
	uint64_t pair = fp + (uint64_t)(int64_t)ARCH_FP_TO_PAIR;

	if (!(regs->valid & UNWIND_REG_BIT(ARCH_REG_FP)))
		return UNWIND_NO_CFI;
	if (fp == 0 && w->guessed)
		return UNWIND_COMPLETE;
	if (pair < sp || pair % 8 != 0 || pair - sp > MAX_GUESS_DISTANCE)
		return UNWIND_NO_CFI;
	if (!stack_read(&w->stack, pair, &caller_fp) || !stack_read(&w->stack, pair + 8, &ra))
		return UNWIND_TRUNCATED;
	if (ra == 0 && caller_fp == 0 && w->guessed)
		return UNWIND_COMPLETE;
	if (is_leaf_record(w, regs, ra)) {
		caller_fp = ra;
		ra = regs->r[ARCH_REG_LR];
	}
	ra &= ARCH_CODE_MASK;
	if (!is_code(w, ra))
		return UNWIND_NO_CFI;
	regs->r[ARCH_REG_SP] = pair + 16;
	regs->r[ARCH_REG_FP] = caller_fp;
	regs->r[ARCH_REG_PC] = ra;
	regs->valid = UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_FP) |
		      UNWIND_REG_BIT(ARCH_REG_PC);
	w->guessed = true;
	return UNWIND_N_OUTCOMES;
}

/* What follows counts only if it reaches an outermost function. */
static void doubt(struct walk *w, enum unwind_outcome outcome, uint64_t sp)
{
	w->n_certain = w->n;
	w->doubt = outcome;
	w->certain = (struct unwind_regs){.valid = UNWIND_REG_BIT(ARCH_REG_SP)};
	w->certain.r[ARCH_REG_SP] = sp;
}

/* A word that may be the return address of a frame: is it behind a call of its function? */
static bool is_called_from(struct walk *w, uint64_t ra, const struct unwind_mapping *callee,
			   uint64_t function)
{
	const struct memo *memo = find_memo(w, ra - 1);

	return memo && memo->mapping.module &&
	       lost_fp_calls(memo->mapping.module, ra - memo->mapping.bias,
			     memo->mapping.module == callee->module ? function : 0);
}

/*
 * The frame pointer was not recorded, and the function's rule wants it. What is found counts only
 * if the walk reaches an outermost function, as behind clone().
 */
static __attribute__((noinline)) void find_lost_fp(struct walk *w, struct unwind_mapping callee,
						   uint64_t addr, bool innermost,
						   struct unwind_regs *regs)
{
	const struct stack_copy copy = {w->stack.bytes, w->stack.start, w->stack.n, NULL};
	uint64_t sp = regs->r[ARCH_REG_SP], fp, ra;
	struct lost_fp lost;
	size_t n_found = 0;

	if (!callee.module || !lost_fp_places(callee.module, addr - callee.bias, innermost, &lost))
		return;
	for (size_t i = 0; i < lost.n; i++) {
		fp = sp + lost.above_sp[i];
		if (fp % 16 != 0 || !stack_read(&copy, fp + 8, &ra) ||
		    !is_called_from(w, ra, &callee, lost.function))
			continue;
		regs->r[ARCH_REG_FP] = fp;
		n_found++;
	}
	if (n_found != 1)
		return;
	regs->valid |= UNWIND_REG_BIT(ARCH_REG_FP);
	if (w->n_certain == 0)
		doubt(w, UNWIND_BAD_CFI, sp);
}

/* A call through a bad pointer: nothing has run there, so the return address is on top of the
 * stack, or in lr. */
static enum unwind_outcome step_bad_call(struct walk *w, struct unwind_regs *regs)
{
	uint64_t ra;

	if (ARCH_HAS_LR)
		ra = regs->valid & UNWIND_REG_BIT(ARCH_REG_LR)
			     ? regs->r[ARCH_REG_LR] & ARCH_CODE_MASK
			     : 0;
	else if (!stack_read(&w->stack, regs->r[ARCH_REG_SP], &ra))
		return UNWIND_NO_MAPPING;
	if (!is_code(w, ra))
		return UNWIND_NO_MAPPING;
	if (ARCH_HAS_LR)
		regs->valid &= ~UNWIND_REG_BIT(ARCH_REG_LR);
	else
		regs->r[ARCH_REG_SP] += 8;
	regs->r[ARCH_REG_PC] = ra;
	return UNWIND_N_OUTCOMES;
}

/*
 * A Go function that switches to another stack at some point. CFI is right before that point, but
 * nothing says where it is. After it, what looks like the caller is a word of the other stack. So
 * the walk goes on, but what it finds counts only if it reaches the end of a Go stack: an outermost
 * function, or another one that has switched. That does not happen by accident: each frame in
 * between would have to fit.
 *
 * A function that is calling has already switched, or has seen that it need not. In the second case
 * the frame pointer, which such a function saves and sets if it has a frame, is right above its
 * frame and gives the caller even if the function has aligned sp. In the first case it points far
 * away, to the old stack.
 */
static enum step step_other_stack(struct walk *w, struct rule rule, bool innermost,
				  struct unwind_regs *regs)
{
	uint64_t sp = regs->r[ARCH_REG_SP], cfa = sp + (uint64_t)(int64_t)rule.cfa_offset;
	uint64_t fp = regs->r[ARCH_REG_FP];

	doubt(w, UNWIND_TRUNCATED, sp);
	if (!innermost && regs->valid & UNWIND_REG_BIT(ARCH_REG_FP)) {
		w->certain.valid |= UNWIND_REG_BIT(ARCH_REG_FP);
		w->certain.r[ARCH_REG_FP] = fp;
	}
	if (!innermost) {
		if (ARCH_HAS_LR || !(regs->valid & UNWIND_REG_BIT(ARCH_REG_FP)) ||
		    rule.cfa_offset < 16 || fp + 16 - cfa > MAX_UNCOUNTED_BYTES)
			return STEP_NO_PROGRESS;
		cfa = fp + 16;
		rule.fp_words = -2;
	}
	return step_compact(&w->stack, rule, cfa, regs);
}

/*
 * C libraries end the CFI of clone() before its system call, because what it says is wrong for the
 * new thread or process, which begins there with another stack. It stays right for the caller, who
 * waits there for a process that posix_spawn() makes. The two have different results of the call: 0
 * is the new one's, who has no caller. Without that register, what looks like a caller may be a
 * word of the new stack, so the frames count only if they reach an outermost function, as above.
 */
static enum step step_clone(struct walk *w, struct rule rule, struct unwind_regs *regs)
{
	uint64_t cfa = cfa_by_sp(w, rule, regs);

	if (regs->valid & UNWIND_REG_BIT(ARCH_REG_RESULT))
		return regs->r[ARCH_REG_RESULT] ? step_compact(&w->stack, rule, cfa, regs)
						: STEP_END;
	doubt(w, UNWIND_NO_CFI, regs->r[ARCH_REG_SP]);
	return step_compact(&w->stack, rule, cfa, regs);
}

/* Ends a walk: drops the frames that do not count. */
static enum unwind_outcome settle(struct walk *w, enum unwind_outcome outcome,
				  struct unwind_regs *regs)
{
	if (w->n_certain == 0)
		return outcome;
	w->n = w->n_certain;
	*regs = w->certain;
	*w->stack.missing = w->stack.start - 1;
	return w->doubt;
}

static enum step step_by_full(struct walk *w, const struct full_rule *f, bool *innermost,
			      struct unwind_regs *regs)
{
	enum step step;

	if (f->signal_frame) {
		if (++w->signal_frames > MAX_SIGNAL_FRAMES)
			return STEP_NO_PROGRESS;
		/* Nobody called the trampoline: its address is exact, not a return address. */
		w->frames[w->n - 1].address = regs->r[ARCH_REG_PC];
	}
	step = step_full(f, &w->stack, *innermost, regs);
	*innermost = f->signal_frame;
	if (step == STEP_LOST_SP) {
		w->lost_sp = is_code(w, regs->r[ARCH_REG_PC]);
		return w->lost_sp ? STEP_OK : STEP_NO_PROGRESS;
	}
	return step;
}

/* A signal handler returns to code without CFI, but the kernel's signal frame is on the stack. */
static bool is_signal_frame(struct walk *w, const struct unwind_regs *regs,
			    struct unwind_regs *ret_before)
{
	uint64_t sp = regs->r[ARCH_REG_SP];

	if (!arch_signal_frame(&w->stack, sp, ret_before) ||
	    !find_memo(w, ret_before->r[ARCH_REG_PC]))
		return false;
	/* Higher in this stack, or in another. */
	return ret_before->r[ARCH_REG_SP] > sp ||
	       ret_before->r[ARCH_REG_SP] - w->stack.start >= w->stack.n;
}

static enum step step_signal_frame(struct walk *w, const struct unwind_regs *before,
				   bool *innermost, struct unwind_regs *regs)
{
	if (++w->signal_frames > MAX_SIGNAL_FRAMES)
		return STEP_NO_PROGRESS;
	w->frames[w->n - 1].address = regs->r[ARCH_REG_PC]; /* exact: it was interrupted */
	*regs = *before;
	*innermost = true;
	return STEP_OK;
}

/* A runtime's own frame: false, it is none. */
static __attribute__((noinline)) bool step_foreign(struct walk *w, const struct memo *memo,
						   bool *innermost, struct unwind_regs *regs,
						   enum unwind_outcome *ret)
{
	bool in_file = memo->mapping.module || memo->mapping.file_missing;
	const struct unwind_foreign frame = {
		.n = w->n - 1,
		.innermost = *innermost,
		.by_cfi = !w->foreign,
		.file_start = in_file ? memo->mapping.start : 0,
		.file_end = in_file ? memo->mapping.end : 0,
		.stack = w->stack.bytes,
		.start = w->stack.start,
		.n_stack = w->stack.n,
	};
	enum unwind_answer answer;

	*ret = UNWIND_N_OUTCOMES;
	answer = w->u->foreign(w->u->foreign_ctx, &frame, regs, ret, w->stack.missing);
	if (answer == UNWIND_NOT_MINE)
		return false;
	w->foreign = answer == UNWIND_STEPPED;
	w->guessed = false;
	*innermost = false;
	regs->valid &= UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_FP) |
		       UNWIND_REG_BIT(ARCH_REG_PC);
	return true;
}

static enum unwind_outcome step_outcome(enum step step)
{
	switch (step) {
	case STEP_OK:
		return UNWIND_N_OUTCOMES;
	case STEP_END:
		return UNWIND_COMPLETE;
	case STEP_TRUNCATED:
		return UNWIND_TRUNCATED;
	case STEP_NO_PROGRESS:
		return UNWIND_NO_PROGRESS;
	default:
		return UNWIND_BAD_CFI;
	}
}

static inline struct rule rule_at(struct walk *w, const struct memo *memo, uint64_t addr,
				  bool innermost)
{
	struct unwind_module *m = memo->mapping.module;
	struct rule rule = {.kind = RULE_GUESS_FP};

	if (m)
		rule = find_rule(w, m, addr - memo->base);
	if (rule.kind == RULE_CLONE && !innermost)
		rule.kind = RULE_GUESS_FP; /* nothing is called there */
	return rule;
}

/*
 * STEP_NEEDS_REGS: start again with full rules. Else *ret: the outcome, UNWIND_N_OUTCOMES to go on.
 */
static inline enum step step_frame(struct walk *w, const struct memo *memo, uint64_t addr,
				   bool *innermost, struct unwind_regs *regs,
				   enum unwind_outcome *ret)
{
	struct unwind_module *m = memo->mapping.module;
	struct rule rule = rule_at(w, memo, addr, *innermost);
	const struct full_rule *full = NULL;
	bool was_innermost = *innermost, missing = !m && memo->mapping.file_missing;
	struct unwind_regs before;
	enum step step;

	if (rule.kind == RULE_GUESS_FP && !missing && !was_innermost &&
	    is_signal_frame(w, regs, &before))
		rule.kind = RULE_SIGNAL;
	else if (rule.kind == RULE_GUESS_FP && w->u->foreign &&
		 step_foreign(w, memo, innermost, regs, ret))
		return STEP_OK;
	else if (missing)
		rule.kind = RULE_NONE;
	w->foreign = false;
	if (rule.kind == RULE_FP && !(regs->valid & UNWIND_REG_BIT(ARCH_REG_FP))) {
		find_lost_fp(w, memo->mapping, addr, was_innermost, regs);
		memo = find_memo(w, addr);
	}
	if (rule.kind == RULE_FULL || (w->full && (rule.kind == RULE_SP || rule.kind == RULE_FP))) {
		/* Stubs made by the linker have only a compact rule. */
		full = find_full(w, m, (uint32_t)(addr - memo->base));
		rule.kind = full ? RULE_FULL : rule.kind == RULE_FULL ? RULE_BAD : rule.kind;
	}
	*innermost = false;
	if (__builtin_expect(w->u->trace != NULL, 0))
		w->u->trace(w->u->trace_ctx, &(struct walk_step){w->n - 1, addr, &memo->mapping,
								 rule, full, regs, &w->stack});
	switch (rule.kind) {
	case RULE_SP:
	case RULE_SP_TRAP:
		step = step_compact(&w->stack, rule, cfa_by_sp(w, rule, regs), regs);
		*innermost = rule.kind == RULE_SP_TRAP;
		break;
	case RULE_FP:
		if (!(regs->valid & UNWIND_REG_BIT(ARCH_REG_FP)))
			return STEP_NEEDS_REGS;
		step = step_compact(&w->stack, rule,
				    regs->r[ARCH_REG_FP] + (uint64_t)(int64_t)rule.cfa_offset,
				    regs);
		break;
	case RULE_FULL:
		*innermost = was_innermost;
		step = step_by_full(w, full, innermost, regs);
		break;
	case RULE_END:
		w->n_certain = 0;
		step = STEP_END;
		break;
	case RULE_OTHER_STACK:
		step = step_other_stack(w, rule, was_innermost, regs);
		break;
	case RULE_CLONE:
		step = step_clone(w, rule, regs);
		break;
	case RULE_GUESS_FP:
		*ret = step_guess_fp(w, regs);
		return STEP_OK;
	case RULE_SIGNAL:
		step = step_signal_frame(w, &before, innermost, regs);
		break;
	case RULE_NONE:
		*ret = UNWIND_NO_FILE;
		return STEP_OK;
	default:
		step = STEP_BAD;
		break;
	}
	w->guessed = false;
	*ret = step_outcome(step);
	return step;
}

static uint64_t depth_bytes(const struct walk *w, const struct unwind_regs *regs)
{
	uint64_t depth = regs->r[ARCH_REG_SP] - w->stack.start;

	/* Beyond: another stack, or nonsense. */
	return depth < w->stack.n ? depth : w->stack.n;
}

static inline struct unwind_frame frame_at(uint64_t addr, const struct memo *memo,
					   const struct unwind_regs *regs)
{
	return (struct unwind_frame){
		.address = addr,
		.bias = memo ? memo->mapping.bias : 0,
		.sp = regs->r[ARCH_REG_SP],
		.fp = regs->valid & UNWIND_REG_BIT(ARCH_REG_FP) ? regs->r[ARCH_REG_FP] : 0,
		.tag = memo ? memo->mapping.tag : UINT32_MAX,
	};
}

/* STEP_OK, or STEP_NEEDS_REGS in a walk with compact rules. */
static enum step run(struct walk *w, const struct unwind_regs *first, enum unwind_outcome *ret)
{
	struct unwind_regs regs = *first;
	uint64_t addr = regs.r[ARCH_REG_PC];
	bool innermost = true;

	w->n = 0;
	w->signal_frames = 0;
	w->guessed = false;
	w->lost_sp = false;
	w->foreign = false;
	w->n_certain = 0;
	for (;;) {
		const struct memo *memo = find_memo(w, addr);
		bool called = !innermost;

		if (w->n == w->max_frames) {
			*ret = settle(w, UNWIND_TOO_DEEP, &regs);
			w->u->stats.last_depth_bytes = depth_bytes(w, &regs);
			return STEP_OK;
		}
		w->frames[w->n++] = frame_at(addr, memo, &regs);
		if (w->lost_sp) {
			w->frames[w->n - 1].sp = w->frames[w->n - 1].fp = 0;
			*ret = UNWIND_NO_PROGRESS;
		} else if (!memo) {
			*ret = innermost ? step_bad_call(w, &regs) : UNWIND_NO_MAPPING;
			innermost = false;
		} else if (step_frame(w, memo, addr, &innermost, &regs, ret) == STEP_NEEDS_REGS) {
			if (!w->full)
				return STEP_NEEDS_REGS;
			*ret = UNWIND_BAD_CFI;
		}
		if (*ret == UNWIND_N_OUTCOMES && regs.r[ARCH_REG_PC] == 0)
			*ret = UNWIND_COMPLETE;
		if (*ret != UNWIND_N_OUTCOMES) {
			*ret = settle(w, *ret, &regs);
			w->u->stats.last_depth_bytes = depth_bytes(w, &regs);
			if (*ret == UNWIND_TRUNCATED)
				w->u->cut = (struct unwind_cut){*first, regs, w->stack,
								called || w->n_certain};
			return STEP_OK;
		}
		/* A return address may be the first byte of the next function; the call is before
		 * it.
		 */
		addr = regs.r[ARCH_REG_PC] - (innermost ? 0 : 1);
	}
}

enum unwind_outcome unwind_walk(struct unwinder *u, const struct unwind_regs *regs,
				const uint8_t *stack, size_t n_stack, unwind_find_fn find,
				void *ctx, struct unwind_frame *frames, size_t max_frames,
				size_t *ret_n)
{
	const uint64_t needed = UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_PC);
	uint64_t missing = regs->r[ARCH_REG_SP] - 1;
	struct walk w = {
		.u = u,
		.stack = {stack, regs->r[ARCH_REG_SP], n_stack, &missing},
		.find = find,
		.ctx = ctx,
		.frames = frames,
		.max_frames = max_frames,
	};
	enum unwind_outcome outcome = UNWIND_BAD_CFI;

	u->stats.walks++;
	u->work = 0;
	u->cut.last.valid = 0;
	u->stats.last_depth_bytes = 0;
	if ((regs->valid & needed) != needed) {
		outcome = UNWIND_TRUNCATED;
	} else if (run(&w, regs, &outcome) == STEP_NEEDS_REGS) {
		w.full = true;
		(void)run(&w, regs, &outcome);
	}
	u->stats.frames += w.n;
	u->stats.cache_hits += w.hits;
	u->stats.cache_misses += w.misses;
	u->stats.outcomes[outcome]++;
	u->stats.last_missing_bytes = missing - w.stack.start;
	*ret_n = w.n;
	return outcome;
}
