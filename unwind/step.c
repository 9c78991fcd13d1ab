/* SPDX-License-Identifier: Apache-2.0 */
/* One frame by a full rule, for what the compact form cannot express. */
#include "unwind/internal.h"

static enum step read_word(const struct stack_copy *stack, uint64_t addr, uint64_t *ret)
{
	if (stack_read(stack, addr, ret))
		return STEP_OK;
	/* The copy lacks only what lies above it; any other address is not in the stack. */
	return addr >= stack->start ? STEP_TRUNCATED : STEP_BAD;
}

static bool have(const struct unwind_regs *regs, unsigned int reg)
{
	return reg < UNWIND_N_REGS && regs->valid & UNWIND_REG_BIT(reg);
}

static enum step find_cfa(const struct full_rule *f, const struct stack_copy *stack,
			  const struct unwind_regs *regs, uint64_t *ret)
{
	uint64_t base;

	if (f->cfa.kind == REG_IS_EXPR)
		return expr_run(f->ops + f->cfa.op, f->cfa.n_ops, regs, stack, NULL, ret);
	if (f->cfa.kind != REG_IS_CFA && f->cfa.kind != REG_AT_REG)
		return STEP_BAD;
	if (!have(regs, f->cfa.reg))
		return STEP_NEEDS_REGS;
	base = regs->r[f->cfa.reg] + (uint64_t)(int64_t)f->cfa.value;
	if (f->cfa.kind == REG_AT_REG)
		return read_word(stack, base, ret);
	*ret = base;
	return STEP_OK;
}

struct frame {
	const struct full_rule *f;
	const struct stack_copy *stack;
	const struct unwind_regs *regs; /* this frame's */
	uint64_t cfa;
};

/*
 * The caller's value of a register. A slot below sp is no longer valid (an epilogue has popped it,
 * and compilers do not say so) or never was a slot: the value is still in the register.
 */
static enum step find_register(const struct frame *fr, unsigned int reg, uint64_t *ret)
{
	const struct reg_rule *rule = &fr->f->regs[reg];
	const struct unwind_regs *regs = fr->regs;
	uint64_t addr = fr->cfa + (uint64_t)(int64_t)rule->value;
	enum step step;

	switch (rule->kind) {
	case REG_SAME:
		break;
	case REG_IN_REG:
		reg = rule->reg;
		break;
	case REG_IS_CFA:
		*ret = addr;
		return STEP_OK;
	case REG_AT_CFA:
		if (addr >= regs->r[ARCH_REG_SP] || fr->f->signal_frame ||
		    (reg == ARCH_REG_PC && !ARCH_HAS_LR))
			return read_word(fr->stack, addr, ret);
		if (reg == ARCH_REG_PC)
			reg = ARCH_REG_LR;
		break;
	case REG_AT_REG:
		if (!have(regs, rule->reg))
			return STEP_NEEDS_REGS;
		return read_word(fr->stack, regs->r[rule->reg] + (uint64_t)(int64_t)rule->value,
				 ret);
	case REG_AT_EXPR:
	case REG_IS_EXPR:
		step = expr_run(fr->f->ops + rule->op, rule->n_ops, regs, fr->stack, &fr->cfa,
				&addr);
		if (step != STEP_OK)
			return step;
		if (rule->kind == REG_AT_EXPR)
			return read_word(fr->stack, addr, ret);
		*ret = addr;
		return STEP_OK;
	default:
		return STEP_BAD;
	}
	if (!have(regs, reg))
		return STEP_NEEDS_REGS;
	*ret = regs->r[reg];
	return STEP_OK;
}

/*
 * The stack must shrink with every frame. Two exceptions: a function interrupted after it has moved
 * its return address from the stack to a register (vfork) or has not saved it yet (aarch64), and a
 * signal frame that returns to another stack, outside of this copy.
 */
static bool progresses(const struct frame *fr, bool innermost, uint64_t new_sp)
{
	uint64_t sp = fr->regs->r[ARCH_REG_SP];

	if (fr->f->signal_frame)
		return new_sp > sp || new_sp - fr->stack->start >= fr->stack->n;
	return new_sp > sp || (new_sp == sp && innermost &&
			       (ARCH_HAS_LR || fr->f->regs[ARCH_REG_PC].kind == REG_IN_REG));
}

static bool sp_is_cfa(const struct reg_rule *rule)
{
	return rule->kind == REG_UNDEFINED || (rule->kind == REG_IS_CFA && rule->value == 0);
}

static enum step find_caller(const struct full_rule *f, const struct stack_copy *stack,
			     bool innermost, struct unwind_regs *regs)
{
	const struct unwind_regs before = *regs;
	struct frame fr = {f, stack, &before, 0};
	struct unwind_regs after = {.valid = 0};
	const uint64_t must = UNWIND_REG_BIT(ARCH_REG_PC) | UNWIND_REG_BIT(ARCH_REG_SP);
	enum step step;

	if (f->regs[ARCH_REG_PC].kind == REG_UNDEFINED)
		return STEP_END;
	if (f->regs[ARCH_REG_PC].kind == REG_SAME)
		return STEP_BAD;
	step = find_cfa(f, stack, &before, &fr.cfa);
	if (step != STEP_OK)
		return step;
	for (unsigned int reg = 0; reg < UNWIND_N_REGS; reg++) {
		if (reg == ARCH_REG_SP && sp_is_cfa(&f->regs[reg])) {
			after.r[reg] = fr.cfa;
			step = STEP_OK;
		} else {
			step = find_register(&fr, reg, &after.r[reg]);
		}
		if (step == STEP_OK)
			after.valid |= UNWIND_REG_BIT(reg);
		else if (must & UNWIND_REG_BIT(reg))
			return step;
	}
	if (ARCH_HAS_LR && !f->signal_frame) {
		/* The value of lr at the caller's call is lost. */
		after.valid &= ~UNWIND_REG_BIT(ARCH_REG_LR);
		after.r[ARCH_REG_PC] &= ARCH_CODE_MASK;
	}
	if (!progresses(&fr, innermost, after.r[ARCH_REG_SP]))
		return STEP_NO_PROGRESS;
	*regs = after;
	return STEP_OK;
}

/*
 * A function about to jump to another frame: longjmp of aarch64 has loaded lr, and its CFI says so,
 * but gives the jump buffer as the CFA, because CFI cannot express the sp that is loaded last. Then
 * we know the pc of the target, but not its frame.
 */
static bool is_leaving(const struct full_rule *f, enum step step, bool innermost,
		       const struct unwind_regs *regs)
{
	const struct reg_rule *pc = &f->regs[ARCH_REG_PC];

	return ARCH_HAS_LR && innermost && (step == STEP_NO_PROGRESS || step == STEP_NEEDS_REGS) &&
	       pc->kind == REG_IN_REG && pc->reg == ARCH_REG_LR && have(regs, ARCH_REG_LR) &&
	       !(f->cfa.kind == REG_IS_CFA && f->cfa.reg == ARCH_REG_SP);
}

enum step step_full(const struct full_rule *f, const struct stack_copy *stack, bool innermost,
		    struct unwind_regs *regs)
{
	enum step step = find_caller(f, stack, innermost, regs);

	if (!is_leaving(f, step, innermost, regs))
		return step;
	regs->r[ARCH_REG_PC] = regs->r[ARCH_REG_LR] & ARCH_CODE_MASK;
	return STEP_LOST_SP;
}
