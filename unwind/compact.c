/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFI instructions -> the compact rule, without libdw.
 *
 * A compact rule holds the CFA, the return address and the frame pointer, and ignores other
 * registers. Nearly every row of compiled code needs no more, and setting up libdw for one row
 * takes ten times as long as running the row. libdw gets the rows that are not so simple (an
 * expression, another register, a signal frame) and the entries with an instruction unknown here;
 * it decides what is damaged.
 *
 * All operands are read within the entry's private copy; the state is of fixed size.
 */
#include <dwarf.h>

#include "unwind/internal.h"

enum { MAX_REMEMBERED = 8 };

enum saved {
	SAVED_SAME,
	SAVED_AT_CFA, /* + offset */
	SAVED_UNDEFINED,
	SAVED_OTHERWISE,
};
struct saved_reg {
	uint32_t how;
	int64_t offset;
};

struct compact_state {
	uint64_t cfa_reg;
	int64_t cfa_offset;
	bool cfa_known; /* the CFA is that register + that offset */
	bool sp_known;	/* no instruction sets sp: the caller's sp is the CFA */
	struct saved_reg fp, pc;
};

struct compact_run {
	const struct cfi_entry *e;
	struct cursor c;
	struct compact_state now, initial, remembered[MAX_REMEMBERED];
	unsigned int n_remembered;
	uint64_t pc, loc, end;
	bool in_cie, passed;
	int64_t pushed; /* compact_pushed_bytes() */
};

static bool advance(struct compact_run *r, uint64_t delta)
{
	uint64_t to = r->loc + r->e->code_align * delta;

	if (r->in_cie || to < r->loc)
		return false;
	if (to > r->pc) {
		r->passed = true;
		r->end = to;
	} else {
		r->loc = to;
	}
	return true;
}

static void set_saved(struct compact_run *r, uint64_t reg, enum saved how, int64_t offset)
{
	if (reg == ARCH_REG_FP)
		r->now.fp = (struct saved_reg){how, offset};
	else if (reg == ARCH_REG_RA)
		r->now.pc = (struct saved_reg){how, offset};
	else if (reg == ARCH_REG_SP)
		r->now.sp_known = false;
	if (ARCH_HAS_LR && reg == ARCH_REG_RA && how == SAVED_AT_CFA && offset >= 0 &&
	    r->now.cfa_known && r->now.cfa_reg == ARCH_REG_SP)
		r->pushed = offset + 8;
}

static bool set_cfa(struct compact_run *r, uint64_t reg, int64_t offset)
{
	r->now.cfa_reg = reg;
	r->now.cfa_offset = offset;
	r->now.cfa_known = true;
	return true;
}

static bool restore(struct compact_run *r, uint64_t reg)
{
	if (r->in_cie) /* no initial row yet to restore from */
		return false;
	if (reg == ARCH_REG_FP)
		r->now.fp = r->initial.fp;
	else if (reg == ARCH_REG_RA)
		r->now.pc = r->initial.pc;
	else if (reg == ARCH_REG_SP)
		r->now.sp_known = r->initial.sp_known;
	return true;
}

static int64_t factored(const struct compact_run *r, uint64_t operand)
{
	return (int64_t)(operand * (uint64_t)r->e->data_align);
}

static bool skip_block(struct cursor *c)
{
	uint64_t n;

	return leb_read_u(c, &n) && cursor_take(c, (size_t)n);
}

/* Instructions with a register and one operand. */
static bool run_register(struct compact_run *r, uint8_t op)
{
	struct cursor *c = &r->c;
	uint64_t reg, u = 0;
	int64_t s = 0;

	if (!leb_read_u(c, &reg) || reg > ENTRY_MAX_REG)
		return false;
	switch (op) {
	case DW_CFA_undefined:
		set_saved(r, reg, SAVED_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set_saved(r, reg, SAVED_SAME, 0);
		return true;
	case DW_CFA_restore_extended:
		return restore(r, reg);
	case DW_CFA_offset_extended:
		if (!leb_read_u(c, &u))
			return false;
		set_saved(r, reg, SAVED_AT_CFA, factored(r, u));
		return true;
	case DW_CFA_offset_extended_sf:
		if (!leb_read_s(c, &s))
			return false;
		set_saved(r, reg, SAVED_AT_CFA, factored(r, (uint64_t)s));
		return true;
	case DW_CFA_def_cfa:
		return leb_read_u(c, &u) && set_cfa(r, reg, (int64_t)u);
	case DW_CFA_def_cfa_sf:
		return leb_read_s(c, &s) && set_cfa(r, reg, factored(r, (uint64_t)s));
	case DW_CFA_def_cfa_register:
		return r->now.cfa_known && set_cfa(r, reg, r->now.cfa_offset);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		set_saved(r, reg, SAVED_OTHERWISE, 0);
		return skip_block(c);
	default:
		return false;
	}
}

static bool run_extended(struct compact_run *r, uint8_t op)
{
	uint64_t u;
	int64_t s;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
		return advance(r, cursor_u8(&r->c));
	case DW_CFA_advance_loc2:
		return advance(r, cursor_u16(&r->c));
	case DW_CFA_advance_loc4:
		return advance(r, cursor_u32(&r->c));
	case DW_CFA_remember_state:
		if (r->n_remembered == MAX_REMEMBERED)
			return false;
		r->remembered[r->n_remembered++] = r->now;
		return true;
	case DW_CFA_restore_state:
		if (r->n_remembered == 0)
			return false;
		r->now = r->remembered[--r->n_remembered];
		return true;
	case DW_CFA_def_cfa_offset:
		return leb_read_u(&r->c, &u) && r->now.cfa_known &&
		       set_cfa(r, r->now.cfa_reg, (int64_t)u);
	case DW_CFA_def_cfa_offset_sf:
		return leb_read_s(&r->c, &s) && r->now.cfa_known &&
		       set_cfa(r, r->now.cfa_reg, factored(r, (uint64_t)s));
	case DW_CFA_def_cfa_expression:
		r->now.cfa_known = false;
		return skip_block(&r->c);
	case DW_CFA_GNU_args_size:
		return leb_read_u(&r->c, &u);
	default:
		return arch_cfa_op_is_nop(op) || run_register(r, op);
	}
}

/* Runs instructions until the row of pc is complete. */
static bool run_code(struct compact_run *r)
{
	uint64_t u;

	while (cursor_left(&r->c) > 0 && !r->passed) {
		uint8_t op = cursor_u8(&r->c), low = op & 0x3f;
		bool good = true;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			good = advance(r, low);
			break;
		case DW_CFA_offset:
			good = leb_read_u(&r->c, &u);
			if (good)
				set_saved(r, low, SAVED_AT_CFA, factored(r, u));
			break;
		case DW_CFA_restore:
			good = restore(r, low);
			break;
		default:
			good = run_extended(r, op);
			break;
		}
		if (!good || !cursor_ok(&r->c))
			return false;
	}
	return true;
}

bool compact_return_address(const struct reg_rule *pc, struct rule *rule)
{
	if (ARCH_HAS_LR && pc->kind == REG_IN_REG && pc->reg == ARCH_REG_LR) {
		rule->ra_words = RULE_RA_IN_LR;
		return true;
	}
	if (pc->kind != REG_AT_CFA || pc->value % 8 != 0)
		return false;
	if (ARCH_HAS_LR && rule->fp_words != 0 && pc->value / 8 == rule->fp_words + 1) {
		rule->ra_words = RULE_RA_BEHIND_FP;
		return true;
	}
	rule->ra_words = (int8_t)(pc->value / 8);
	return pc->value < 0 && rule->ra_words == pc->value / 8 &&
	       (ARCH_HAS_LR || rule->ra_words == ARCH_RA_WORDS);
}

static bool make_rule(const struct compact_state *s, struct rule *ret)
{
	struct reg_rule pc = {.kind = REG_UNKNOWN_RULE};
	struct rule rule = {.kind = RULE_SP};

	if (s->pc.how == SAVED_UNDEFINED) {
		*ret = (struct rule){.kind = RULE_END};
		return true;
	}
	if (!s->cfa_known || !s->sp_known || s->cfa_offset != (int32_t)s->cfa_offset)
		return false;
	if (s->cfa_reg == ARCH_REG_FP)
		rule.kind = RULE_FP;
	else if (s->cfa_reg != ARCH_REG_SP)
		return false;
	rule.cfa_offset = (int32_t)s->cfa_offset;
	if (s->fp.how == SAVED_AT_CFA && s->fp.offset < 0 && s->fp.offset % 8 == 0 &&
	    s->fp.offset / 8 >= INT16_MIN)
		rule.fp_words = (int16_t)(s->fp.offset / 8);
	else if (s->fp.how != SAVED_SAME)
		return false;
	if (s->pc.how == SAVED_AT_CFA && s->pc.offset == (int32_t)s->pc.offset)
		pc = (struct reg_rule){.kind = REG_AT_CFA, .value = (int32_t)s->pc.offset};
	else if (s->pc.how == SAVED_SAME && ARCH_HAS_LR)
		pc = (struct reg_rule){.kind = REG_IN_REG, .reg = ARCH_REG_LR};
	if (!compact_return_address(&pc, &rule))
		return false;
	*ret = rule;
	return true;
}

/* The CIE's and the FDE's instructions up to the row of pc. */
static bool run_entry(struct compact_run *r, const struct cfi_entry *e, uint64_t pc)
{
	r->e = e;
	r->c = cursor_make(e->cie_code, e->n_cie_code);
	r->now = (struct compact_state){.sp_known = true};
	r->n_remembered = 0;
	r->pc = pc;
	r->loc = e->start;
	r->end = e->end;
	r->in_cie = true;
	r->passed = false;
	r->pushed = 0;
	if (!run_code(r))
		return false;
	r->initial = r->now;
	r->in_cie = false;
	r->c = cursor_make(e->fde_code, e->n_fde_code);
	return run_code(r);
}

/*
 * A function saves registers below its CFA. If CFI with a CFA from sp says that lr was saved above
 * it, then a part of the frame was pushed before the function was entered, and CFI puts the CFA too
 * low in all rows of the function, not only after the save. An example is _dl_runtime_resolve in
 * glibc: the PLT has pushed lr.
 */
int32_t compact_pushed_bytes(const struct cfi_entry *e)
{
	struct compact_run r;

	(void)run_entry(&r, e, UINT64_MAX);
	return r.pushed == (int32_t)r.pushed ? (int32_t)r.pushed : 0;
}

bool compact_compile(const struct cfi_entry *e, uint64_t pc, struct rule *ret, uint64_t *ret_start,
		     uint64_t *ret_end)
{
	struct compact_run r;

	if (e->signal_frame || !run_entry(&r, e, pc) || !make_rule(&r.now, ret))
		return false;
	if (ARCH_HAS_LR && ret->ra_words == RULE_RA_IN_LR && compact_pushed_bytes(e) != 0)
		return false;
	*ret_start = r.loc;
	*ret_end = r.end < e->end ? r.end : e->end;
	return true;
}
