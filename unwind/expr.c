/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of CFI (DWARF 5, 2.5.1), as procedure linkage tables, signal trampolines and a
 * few hand-written functions need them. Operators, steps and stack are limited; the only memory is
 * the stack copy.
 */
#include <dwarf.h>

#include "unwind/internal.h"

struct machine {
	uint64_t v[EXPR_MAX_STACK];
	unsigned int n;
	bool failed;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->n >= EXPR_MAX_STACK)
		m->failed = true;
	else
		m->v[m->n++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->n == 0) {
		m->failed = true;
		return 0;
	}
	return m->v[--m->n];
}

/* Copies the entry `depth` below the top to the top. */
static void pick(struct machine *m, uint64_t depth)
{
	if (depth >= m->n)
		m->failed = true;
	else
		push(m, m->v[m->n - 1 - depth]);
}

static void rotate(struct machine *m, unsigned int count)
{
	uint64_t top;

	if (m->n < count) {
		m->failed = true;
		return;
	}
	top = m->v[m->n - 1];
	memmove(&m->v[m->n - count + 1], &m->v[m->n - count], (count - 1) * sizeof(top));
	m->v[m->n - count] = top;
}

static void unary(struct machine *m, const struct expr_op *op)
{
	uint64_t a = pop(m);

	switch (op->atom) {
	case DW_OP_abs:
		push(m, (int64_t)a < 0 ? 0 - a : a);
		break;
	case DW_OP_neg:
		push(m, 0 - a);
		break;
	case DW_OP_not:
		push(m, ~a);
		break;
	default: /* DW_OP_plus_uconst */
		push(m, a + (uint64_t)op->number);
		break;
	}
}

static uint64_t compare(uint8_t atom, int64_t a, int64_t b)
{
	switch (atom) {
	case DW_OP_eq:
		return a == b;
	case DW_OP_ge:
		return a >= b;
	case DW_OP_gt:
		return a > b;
	case DW_OP_le:
		return a <= b;
	case DW_OP_lt:
		return a < b;
	default:
		return a != b;
	}
}

static void binary(struct machine *m, uint8_t atom)
{
	uint64_t b = pop(m), a = pop(m);

	switch (atom) {
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_or:
		push(m, a | b);
		break;
	case DW_OP_xor:
		push(m, a ^ b);
		break;
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_div: /* signed; only the lowest number divided by -1 overflows */
		m->failed |= b == 0;
		push(m, b == 0 ? 0 : b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b));
		break;
	case DW_OP_mod:
		m->failed |= b == 0;
		push(m, b == 0 ? 0 : a % b);
		break;
	case DW_OP_shl:
		push(m, b < 64 ? a << b : 0);
		break;
	case DW_OP_shr:
		push(m, b < 64 ? a >> b : 0);
		break;
	case DW_OP_shra:
		push(m, (uint64_t)((int64_t)a >> (b < 64 ? b : 63)));
		break;
	default:
		push(m, compare(atom, (int64_t)a, (int64_t)b));
		break;
	}
}

static enum step deref(struct machine *m, const struct expr_op *op, const struct stack_copy *stack)
{
	unsigned int size = op->atom == DW_OP_deref_size ? (unsigned int)op->number : 8;
	uint64_t addr = pop(m), at = addr - stack->start, value = 0;

	if (m->failed || size == 0 || size > 8)
		return STEP_BAD;
	if (at >= stack->n || stack->n - at < size)
		return addr >= stack->start ? STEP_TRUNCATED : STEP_BAD;
	memcpy(&value, stack->bytes + at, size);
	push(m, value);
	return STEP_OK;
}

/* The operator that starts at byte `offset` of the expression; n: the end; -1: none. */
static int find_op(const struct expr_op *ops, unsigned int n, int64_t offset)
{
	for (unsigned int i = 0; i < n; i++) {
		if (ops[i].offset == offset)
			return (int)i;
	}
	return offset > ops[n - 1].offset ? (int)n : -1;
}

static enum step run_op(struct machine *m, const struct expr_op *op, const struct unwind_regs *regs,
			const struct stack_copy *stack)
{
	switch (op->atom) {
	case DW_OP_lit0 ... DW_OP_lit31:
		push(m, op->atom - DW_OP_lit0);
		break;
	case DW_OP_const1u ... DW_OP_consts:
		push(m, (uint64_t)op->number);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
	case DW_OP_bregx:
		if (op->reg >= UNWIND_N_REGS)
			return STEP_BAD;
		if (!(regs->valid & UNWIND_REG_BIT(op->reg)))
			return STEP_NEEDS_REGS;
		push(m, regs->r[op->reg] + (uint64_t)op->number);
		break;
	case DW_OP_dup:
		pick(m, 0);
		break;
	case DW_OP_over:
		pick(m, 1);
		break;
	case DW_OP_pick:
		pick(m, (uint64_t)op->number);
		break;
	case DW_OP_drop:
		(void)pop(m);
		break;
	case DW_OP_swap:
		rotate(m, 2);
		break;
	case DW_OP_rot:
		rotate(m, 3);
		break;
	case DW_OP_deref:
	case DW_OP_deref_size:
		return deref(m, op, stack);
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		unary(m, op);
		break;
	case DW_OP_and:
	case DW_OP_div ... DW_OP_mul:
	case DW_OP_or:
	case DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
		binary(m, op->atom);
		break;
	case DW_OP_nop:
	case DW_OP_stack_value:
		break;
	default:
		return STEP_BAD;
	}
	return STEP_OK;
}

enum step expr_run(const struct expr_op *ops, unsigned int n, const struct unwind_regs *regs,
		   const struct stack_copy *stack, const uint64_t *cfa, uint64_t *ret)
{
	struct machine m = {.n = 0};
	unsigned int steps = 0;
	enum step step;
	int i = 0;

	if (cfa)
		push(&m, *cfa);
	while (i < (int)n) {
		const struct expr_op *op = &ops[i++];

		if (++steps > EXPR_MAX_STEPS || m.failed)
			return STEP_BAD;
		if (op->atom == DW_OP_skip || (op->atom == DW_OP_bra && pop(&m) != 0)) {
			i = find_op(ops, n, (int64_t)op->offset + 3 + op->number);
			if (i < 0)
				return STEP_BAD;
			continue;
		}
		if (op->atom == DW_OP_bra)
			continue;
		step = run_op(&m, op, regs, stack);
		if (step != STEP_OK)
			return step;
	}
	if (m.failed || m.n == 0)
		return STEP_BAD;
	*ret = m.v[m.n - 1];
	return STEP_OK;
}
