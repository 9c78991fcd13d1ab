/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks an entry before libdw sees it. libdw accepts register numbers up to 134 million (2 GB of
 * rules), copies its whole state at each remember_state, and does not check operands of bad
 * expressions. So this goes through each instruction once before, and checks the bounds of its
 * operands.
 */
#include <dwarf.h>

#include "unwind/internal.h"

/* Takes the operands of an operator; false: expr.c does not know it, or a number is too large. */
static bool take_operands(struct cursor *c, uint8_t op)
{
	uint64_t u;
	int64_t s;

	switch (op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
		(void)cursor_take(c, 1);
		return true;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_bra:
	case DW_OP_skip:
		(void)cursor_take(c, 2);
		return true;
	case DW_OP_const4u:
	case DW_OP_const4s:
		(void)cursor_take(c, 4);
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		(void)cursor_take(c, 8);
		return true;
	case DW_OP_constu:
	case DW_OP_plus_uconst:
	case DW_OP_regx:
		return leb_read_u(c, &u);
	case DW_OP_consts:
	case DW_OP_breg0 ... DW_OP_breg31:
		return leb_read_s(c, &s);
	case DW_OP_bregx:
		return leb_read_u(c, &u) && leb_read_s(c, &s);
	case DW_OP_deref:
	case DW_OP_dup ... DW_OP_over:
	case DW_OP_swap ... DW_OP_rot:
	case DW_OP_abs ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
	case DW_OP_lit0 ... DW_OP_lit31:
	case DW_OP_nop:
		return true;
	default:
		return false;
	}
}

/* Does expr.c know all operators of an expression, and are all complete? */
static bool vet_expression(struct cursor c)
{
	unsigned int n_ops = 0;

	while (cursor_left(&c) > 0) {
		uint8_t op = cursor_u8(&c);

		if (++n_ops > 4 * EXPR_MAX_OPS || !take_operands(&c, op) || !cursor_ok(&c))
			return false;
	}
	return n_ops > 0;
}

static bool read_register(struct cursor *c)
{
	uint64_t reg;

	return leb_read_u(c, &reg) && reg <= ENTRY_MAX_REG;
}

static bool read_block(struct cursor *c)
{
	const uint8_t *start;
	uint64_t n;

	if (!leb_read_u(c, &n) || n > cursor_left(c))
		return false;
	start = cursor_take(c, (size_t)n);
	return start && vet_expression(cursor_make(start, (size_t)n));
}

struct vet {
	struct cfi_entry *e;
	uint8_t *code;
	struct cursor start, c;
	bool in_cie;
	int remembered;
	uint64_t pc, loc; /* loc: where the current row begins */
	bool passed;	  /* loc has gone past pc */
};

static bool advance(struct vet *v, uint64_t to)
{
	v->loc = to;
	if (v->passed)
		return true;
	if (to > v->pc) {
		v->passed = true;
		v->e->row_end = to;
	} else {
		v->e->row_start = to;
	}
	return !v->in_cie;
}

/* Instructions without an operand in the high bits of the opcode. */
static bool vet_extended(struct vet *v, uint8_t op)
{
	struct cursor *c = &v->c;
	bool in_cie = v->in_cie;
	uint64_t u;
	int64_t s;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc: /* its operand is right only if copy and file have the same encoding */
		return v->e->absolute && advance(v, cursor_u64(c));
	case DW_CFA_advance_loc1:
		return advance(v, v->loc + v->e->code_align * cursor_u8(c));
	case DW_CFA_advance_loc2:
		return advance(v, v->loc + v->e->code_align * cursor_u16(c));
	case DW_CFA_advance_loc4:
		return advance(v, v->loc + v->e->code_align * cursor_u32(c));
	case DW_CFA_restore_extended:
		return !in_cie && read_register(c);
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_def_cfa_register:
		return read_register(c);
	case DW_CFA_register:
		return read_register(c) && read_register(c);
	case DW_CFA_remember_state:
		return ++v->remembered <= ENTRY_MAX_REMEMBERED;
	case DW_CFA_restore_state:
		return --v->remembered >= 0;
	case DW_CFA_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_def_cfa:
		return read_register(c) && leb_read_u(c, &u);
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset_sf:
	case DW_CFA_def_cfa_sf:
		return read_register(c) && leb_read_s(c, &s);
	case DW_CFA_def_cfa_offset:
	case DW_CFA_GNU_args_size:
		return leb_read_u(c, &u);
	case DW_CFA_def_cfa_offset_sf:
		return leb_read_s(c, &s);
	case DW_CFA_def_cfa_expression:
		return read_block(c);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return read_register(c) && read_block(c);
	default:
		if (!arch_cfa_op_is_nop(op))
			return false;
		/*
		 * libdw takes some of these for other processors' instructions of the same number.
		 */
		v->code[cursor_left(&v->start) - cursor_left(c) - 1] = DW_CFA_nop;
		return true;
	}
}

static bool vet_code(struct vet *v)
{
	uint64_t u;

	while (cursor_left(&v->c) > 0) {
		uint8_t op = cursor_u8(&v->c);
		bool good;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			good = advance(v, v->loc + v->e->code_align * (op & 0x3f));
			break;
		case DW_CFA_restore:
			good = !v->in_cie;
			break;
		case DW_CFA_offset:
			good = leb_read_u(&v->c, &u);
			break;
		default:
			good = vet_extended(v, op);
			break;
		}
		if (!good || !cursor_ok(&v->c))
			return false;
	}
	/* libdw frees a state that is remembered and never restored. */
	return true;
}

int entry_vet(struct cfi_entry *e, uint64_t pc)
{
	struct cursor cie_code = cursor_make(e->cie_code, e->n_cie_code),
		      fde_code = cursor_make(e->fde_code, e->n_fde_code);
	struct vet cie = {
		.e = e, .code = e->cie_code, .start = cie_code, .c = cie_code, .in_cie = true};
	struct vet fde = {.e = e,
			  .code = e->fde_code,
			  .start = fde_code,
			  .c = fde_code,
			  .pc = pc,
			  .loc = e->start};

	if (!vet_code(&cie))
		return -EBADMSG;
	e->row_start = e->start;
	e->row_end = e->end;
	if (!vet_code(&fde))
		return -EBADMSG;
	if (e->row_start < e->start || e->row_start > pc)
		e->row_start = pc;
	if (e->row_end > e->end)
		e->row_end = e->end;
	return 0;
}
