/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFI instructions -> rules. libdw evaluates those that are too complex for compact.c.
 *
 * libdw never sees a file of others. dwarf_begin_elf() inflates every compressed debug section it
 * finds, dwarf_getcfi_elf() on a file without a search table reads and keeps every FDE, and both
 * read mapped pages that may vanish. Instead there is one small ELF image in our own memory with an
 * .eh_frame section of one CIE, one FDE and a terminator; each vetted entry (entry.c, vet.c), from
 * .eh_frame or .debug_frame alike, is written there in its plainest form, with absolute addresses,
 * and dwarf_getcfi_elf() is asked about it. Only our rules are kept, nothing that libdw allocated.
 */
#include <dwarf.h>
#include <elf.h>

#include "unwind/internal.h"

enum {
	SECTION_OFFSET = sizeof(Elf64_Ehdr),
	/* Two entry heads, the two codes, the terminator. */
	SECTION_BYTES = 128 + ENTRY_MAX_CIE_BYTES + ENTRY_MAX_FDE_BYTES,
	NAMES_OFFSET = SECTION_OFFSET + SECTION_BYTES,
	NAMES_BYTES = 32,
	SHDRS_OFFSET = NAMES_OFFSET + NAMES_BYTES,
	IMAGE_BYTES = SHDRS_OFFSET + 3 * sizeof(Elf64_Shdr),
	MAX_CLONE_BYTES = 16, /* of clone() without CFI: a system call, three jumps */
};
_Static_assert(SHDRS_OFFSET % 8 == 0, "libelf wants aligned headers");

static const char names[] = "\0.eh_frame\0.shstrtab";

int cfi_init(struct unwinder *u)
{
	Elf64_Ehdr eh = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = ARCH_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_shoff = SHDRS_OFFSET,
		.e_ehsize = sizeof(eh),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	Elf64_Shdr sh[3] = {
		[1] = {.sh_name = 1,
		       .sh_type = SHT_PROGBITS,
		       .sh_flags = SHF_ALLOC,
		       .sh_offset = SECTION_OFFSET,
		       .sh_size = SECTION_BYTES,
		       .sh_addralign = 8},
		[2] = {.sh_name = 11,
		       .sh_type = SHT_STRTAB,
		       .sh_offset = NAMES_OFFSET,
		       .sh_size = sizeof(names),
		       .sh_addralign = 1},
	};

	u->entry = malloc(sizeof(*u->entry));
	u->image = calloc(1, IMAGE_BYTES);
	if (!u->entry || !u->image || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOMEM;
	memcpy(u->image, &eh, sizeof(eh));
	memcpy(u->image + NAMES_OFFSET, names, sizeof(names));
	memcpy(u->image + SHDRS_OFFSET, sh, sizeof(sh));
	u->elf = elf_memory((char *)u->image, IMAGE_BYTES);
	return u->elf ? 0 : -ENOMEM;
}

void cfi_deinit(struct unwinder *u)
{
	if (u->elf)
		(void)elf_end(u->elf);
	free(u->image);
	free(u->entry);
}

/* Writing the image */

static uint8_t *put(uint8_t *p, const void *data, size_t n)
{
	memcpy(p, data, n);
	return p + n;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	return put(p, &v, sizeof(v));
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	return put(p, &v, sizeof(v));
}

static uint8_t *put_leb_u(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_leb_s(uint8_t *p, int64_t v)
{
	while (v < -64 || v > 63) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)(v & 0x7f);
	return p;
}

static void write_entry(uint8_t *section, const struct cfi_entry *e)
{
	uint8_t *p = section + 4, *length;

	p = put_u32(p, 0);
	*p++ = 1; /* version */
	p = e->signal_frame ? put(p, "zRS", 4) : put(p, "zR", 3);
	p = put_leb_u(p, e->code_align);
	p = put_leb_s(p, e->data_align);
	*p++ = ARCH_REG_RA;
	*p++ = 1;
	*p++ = DW_EH_PE_absptr;
	/* libdw's list of call-saved registers has a mistake: it names 0 (rax) for 3 (rbx). */
	*p++ = DW_CFA_same_value;
	*p++ = ARCH_REG_UNLISTED;
	p = put(p, e->cie_code, e->n_cie_code);
	(void)put_u32(section, (uint32_t)(p - section - 4));

	length = p;
	p = put_u32(p + 4, (uint32_t)(p + 4 - section));
	p = put_u64(p, e->start);
	p = put_u64(p, e->end - e->start);
	*p++ = 0;
	p = put(p, e->fde_code, e->n_fde_code);
	(void)put_u32(length, (uint32_t)(p - length - 4));
	(void)put_u32(p, 0);
}

/* Reading libdw's answer */

static bool fits_i32(uint64_t v)
{
	return (int64_t)v == (int32_t)v;
}

/* register + offset, in either form that libdw uses. */
static bool op_is_breg(const Dwarf_Op *op, uint8_t *ret_reg, uint64_t *ret_offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*ret_reg = op->atom - DW_OP_breg0;
		*ret_offset = op->number;
	} else if (op->atom == DW_OP_bregx && op->number < UNWIND_N_REGS) {
		*ret_reg = (uint8_t)op->number;
		*ret_offset = op->number2;
	} else {
		return false;
	}
	return *ret_reg < UNWIND_N_REGS && fits_i32(*ret_offset);
}

static struct reg_rule copy_expression(struct full_rule *f, const Dwarf_Op *ops, size_t n,
				       enum reg_rule_kind kind)
{
	struct reg_rule rule = {.kind = REG_UNKNOWN_RULE};

	if (n == 0 || n > (size_t)(EXPR_MAX_OPS - f->n_ops))
		return rule;
	for (size_t i = 0; i < n; i++) {
		struct expr_op *to = &f->ops[f->n_ops + i];
		const Dwarf_Op *op = &ops[i];
		uint64_t number = op->number;
		uint8_t reg = 0;

		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			reg = op->atom - DW_OP_breg0;
		} else if (op->atom == DW_OP_bregx) {
			reg = op->number < UNWIND_N_REGS ? (uint8_t)op->number : UNWIND_N_REGS;
			number = op->number2;
		}
		*to = (struct expr_op){op->atom, reg, (uint16_t)op->offset, (int64_t)number};
	}
	rule.kind = (uint8_t)kind;
	rule.op = f->n_ops;
	rule.n_ops = (uint8_t)n;
	f->n_ops = (uint8_t)(f->n_ops + n);
	return rule;
}

static struct reg_rule classify_cfa(struct full_rule *f, const Dwarf_Op *ops, size_t n)
{
	struct reg_rule rule = {.kind = REG_UNKNOWN_RULE};
	uint64_t offset;
	uint8_t reg;

	if (n >= 1 && op_is_breg(&ops[0], &reg, &offset)) {
		rule.reg = reg;
		rule.value = (int32_t)offset;
		if (n == 1)
			rule.kind = REG_IS_CFA;
		else if (n == 2 && ops[1].atom == DW_OP_deref)
			rule.kind = REG_AT_REG;
		if (rule.kind != REG_UNKNOWN_RULE)
			return rule;
	}
	return copy_expression(f, ops, n, REG_IS_EXPR);
}

/*
 * libdw's forms: [CFA, (+ number), (is a value)], [in register], or an expression. An expression
 * begins with [CFA] too, because it starts with the CFA on its stack.
 */
static struct reg_rule classify_register(struct full_rule *f, const Dwarf_Op *ops, size_t n)
{
	struct reg_rule rule = {.kind = REG_UNKNOWN_RULE};
	bool is_value = n > 0 && ops[n - 1].atom == DW_OP_stack_value;
	uint64_t offset = 0;
	uint8_t reg;

	if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < UNWIND_N_REGS) {
		rule.kind = REG_IN_REG;
		rule.reg = (uint8_t)ops[0].number;
		return rule;
	}
	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return rule;
	ops++;
	n -= is_value ? 2 : 1;
	if (n == 0 || (n == 1 && ops[0].atom == DW_OP_plus_uconst && fits_i32(ops[0].number))) {
		rule.kind = is_value ? REG_IS_CFA : REG_AT_CFA;
		rule.value = n ? (int32_t)ops[0].number : 0;
	} else if (n == 1 && !is_value && op_is_breg(&ops[0], &reg, &offset)) {
		rule.kind = REG_AT_REG;
		rule.reg = reg;
		rule.value = (int32_t)offset;
	} else {
		rule = copy_expression(f, ops, n, is_value ? REG_IS_EXPR : REG_AT_EXPR);
	}
	return rule;
}

static struct reg_rule read_register(struct full_rule *f, Dwarf_Frame *frame, int reg)
{
	struct reg_rule rule = {.kind = REG_UNKNOWN_RULE};
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
		return rule;
	if (n > 0)
		return classify_register(f, ops, n);
	rule.kind = ops ? REG_UNDEFINED : REG_SAME;
	return rule;
}

static bool read_frame(struct full_rule *f, Dwarf_Frame *frame, uint64_t wanted)
{
	Dwarf_Addr start, end;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_info(frame, &start, &end, &f->signal_frame) != ARCH_REG_RA ||
	    dwarf_frame_cfa(frame, &ops, &n) != 0)
		return false;
	f->cfa = classify_cfa(f, ops, n);
	for (int reg = 0; reg < UNWIND_N_REGS; reg++) {
		if (wanted & UNWIND_REG_BIT(reg) && reg < ARCH_N_CFI_REGS)
			f->regs[reg] = read_register(f, frame, reg);
	}
	if (ARCH_HAS_LR) {
		/* The caller continues where lr pointed at the call. */
		f->regs[ARCH_REG_PC] = f->regs[ARCH_REG_LR];
		if (f->regs[ARCH_REG_PC].kind == REG_SAME)
			f->regs[ARCH_REG_PC] = (struct reg_rule){REG_IN_REG, ARCH_REG_LR, 0, 0, 0};
	}
	return true;
}

/* Module-relative [start, end) around vaddr, cut to 32 bits and to the entry's own range. */
static void set_range(const struct unwind_module *m, uint64_t vaddr, uint64_t start, uint64_t end,
		      uint32_t *ret_start, uint32_t *ret_end)
{
	if (start > vaddr || end <= vaddr) {
		start = vaddr;
		end = vaddr + 1;
	}
	if (start < m->base)
		start = m->base;
	if (end - m->base > m->span)
		end = m->base + m->span;
	*ret_start = (uint32_t)(start - m->base);
	*ret_end = (uint32_t)(end - m->base);
}

/* The CFA is higher than CFI says (compact.c), so all offsets from it are lower. */
static void add_pushed(struct full_rule *f, int32_t pushed)
{
	if (f->cfa.kind != REG_IS_CFA || f->cfa.reg != ARCH_REG_SP || f->n_ops > 0 ||
	    __builtin_add_overflow(f->cfa.value, pushed, &f->cfa.value))
		return;
	for (int reg = 0; reg < UNWIND_N_REGS; reg++) {
		struct reg_rule *rule = &f->regs[reg];

		if (rule->kind == REG_AT_CFA &&
		    __builtin_sub_overflow(rule->value, pushed, &rule->value))
			rule->kind = REG_UNKNOWN_RULE;
	}
}

/* Vets the entry and lets libdw run it for vaddr; 0 or -EBADMSG. */
static int run_entry(struct unwind_module *m, struct cfi_entry *e, uint64_t vaddr, uint64_t wanted,
		     struct full_rule *ret)
{
	Dwarf_Frame *frame = NULL;
	bool good = false;
	Dwarf_CFI *cfi;
	int r = entry_vet(e, vaddr);

	if (r < 0)
		return r;
	write_entry(m->u->image + SECTION_OFFSET, e);
	cfi = dwarf_getcfi_elf(m->u->elf);
	if (!cfi)
		return -EBADMSG;
	if (dwarf_cfi_addrframe(cfi, vaddr, &frame) == 0) {
		good = read_frame(ret, frame, wanted);
		if (ARCH_HAS_LR && good)
			add_pushed(ret, compact_pushed_bytes(e));
		free(frame);
	}
	(void)dwarf_cfi_end(cfi);
	if (!good)
		return -EBADMSG;
	set_range(m, vaddr, e->row_start, e->row_end, &ret->start, &ret->end);
	return 0;
}

/* .eh_frame first: the program itself unwinds with it. .debug_frame where that has nothing. */
static int find_entry(struct unwind_module *m, uint64_t vaddr, uint64_t *gap_start,
		      uint64_t *gap_end)
{
	int r;

	*gap_start = m->base;
	*gap_end = m->base + m->span;
	r = entry_find(m, &m->eh_frame, vaddr, m->u->entry, gap_start, gap_end);
	if (r != -ENOENT)
		return r;
	r = debug_frame_load(m);
	if (r < 0)
		return r;
	return entry_find(m, &m->debug_frame, vaddr, m->u->entry, gap_start, gap_end);
}

static struct rule compact(const struct full_rule *f)
{
	const struct reg_rule *pc = &f->regs[ARCH_REG_PC], *fp = &f->regs[ARCH_REG_FP],
			      *sp = &f->regs[ARCH_REG_SP];
	struct rule rule = {.kind = RULE_FULL};

	if (pc->kind == REG_UNDEFINED) {
		rule.kind = RULE_END;
		return rule;
	}
	if (f->cfa.kind == REG_UNKNOWN_RULE || pc->kind == REG_UNKNOWN_RULE) {
		rule.kind = RULE_BAD;
		return rule;
	}
	if (f->signal_frame || f->cfa.kind != REG_IS_CFA || sp->kind != REG_IS_CFA ||
	    sp->value != 0)
		return rule;
	if (fp->kind == REG_AT_CFA && fp->value < 0 && fp->value % 8 == 0 &&
	    fp->value / 8 >= INT16_MIN)
		rule.fp_words = (int16_t)(fp->value / 8);
	else if (fp->kind != REG_SAME)
		return rule;
	if (!compact_return_address(pc, &rule))
		return rule;
	/* Below sp: it has been popped (step.c). */
	if (ARCH_HAS_LR && pc->kind == REG_AT_CFA && f->cfa.reg == ARCH_REG_SP &&
	    (int64_t)f->cfa.value + pc->value < 0)
		return rule;
	if (f->cfa.reg == ARCH_REG_SP)
		rule.kind = RULE_SP;
	else if (f->cfa.reg == ARCH_REG_FP)
		rule.kind = RULE_FP;
	rule.cfa_offset = f->cfa.value;
	return rule;
}

/* Cuts the gap around vaddr down to what lies outside of [start, end). */
static void cut_gap(uint64_t vaddr, uint64_t start, uint64_t end, uint64_t *gap_start,
		    uint64_t *gap_end)
{
	if (end <= vaddr && end > *gap_start)
		*gap_start = end;
	if (start > vaddr && start < *gap_end)
		*gap_end = start;
}

/* The handler returns to the trampoline, as if the instruction before it had called the handler. */
static bool in_sigreturn(const struct unwind_module *m, uint32_t rel)
{
	return m->sigreturn && rel + 1 >= m->sigreturn && rel < m->sigreturn + arch_sigreturn_bytes;
}

/* No CFI covers vaddr: stubs made by linkers and the entry function have rules of their own. */
static void gap_row(const struct unwind_module *m, uint64_t vaddr, uint64_t gap_start,
		    uint64_t gap_end, struct row *ret)
{
	uint32_t rel = (uint32_t)(vaddr - m->base);

	if (in_sigreturn(m, rel)) {
		ret->rule.kind = RULE_FULL;
		return;
	}
	ret->rule.kind = RULE_GUESS_FP;
	for (uint32_t i = 0; i < m->n_stubs; i++) {
		const struct stub_range *s = &m->stubs[i];

		if (rel >= s->start && rel < s->end) {
			(void)arch_stub_rule(s->kind, s->bytes, s->n_bytes, rel - s->start,
					     &ret->rule);
			return;
		}
		cut_gap(vaddr, m->base + s->start, m->base + s->end, &gap_start, &gap_end);
	}
	if (m->entry >= gap_start && m->entry < gap_end) {
		uint64_t end = m->entry + ARCH_ENTRY_BYTES;

		if (vaddr >= m->entry && vaddr < end) {
			ret->rule.kind = RULE_END;
			gap_start = m->entry;
			if (end < gap_end)
				gap_end = end;
		} else {
			cut_gap(vaddr, m->entry, end, &gap_start, &gap_end);
		}
	}
	set_range(m, vaddr, gap_start, gap_end, &ret->start, &ret->end);
}

/* The row of what covers vaddr. 0; -ENOENT: nothing does, but the gap is this; -EBADMSG, -EIO. */
static int covered_row(struct unwind_module *m, uint64_t vaddr, struct row *ret,
		       uint64_t *gap_start, uint64_t *gap_end)
{
	const uint64_t wanted = UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_FP) |
				UNWIND_REG_BIT(ARCH_REG_RA);
	int r = find_entry(m, vaddr, gap_start, gap_end);
	struct full_rule f = {.n_ops = 0};
	uint64_t start, end;

	if (r < 0)
		return r;
	if (compact_compile(m->u->entry, vaddr, &ret->rule, &start, &end)) {
		set_range(m, vaddr, start, end, &ret->start, &ret->end);
		return 0;
	}
	r = run_entry(m, m->u->entry, vaddr, wanted, &f);
	if (r == 0) {
		ret->start = f.start;
		ret->end = f.end;
		ret->rule = compact(&f);
	}
	return r;
}

/*
 * The few instructions of clone() that have no CFI (walk.c): between those of the caller and the
 * first of the new thread, which has no caller.
 */
static void clone_row(struct unwind_module *m, uint64_t start, uint64_t end, struct row *ret)
{
	struct row before, behind;
	uint64_t ignore[2];

	if (start <= m->base || end - start > MAX_CLONE_BYTES || end >= m->base + m->span ||
	    covered_row(m, end, &behind, &ignore[0], &ignore[1]) < 0 ||
	    behind.rule.kind != RULE_END ||
	    covered_row(m, start - 1, &before, &ignore[0], &ignore[1]) < 0 ||
	    before.rule.kind != RULE_SP)
		return;
	ret->rule = before.rule;
	ret->rule.kind = RULE_CLONE;
}

void cfi_compile_row(struct unwind_module *m, uint64_t vaddr, struct row *ret)
{
	uint64_t gap_start, gap_end;
	struct go_rule go;

	*ret = (struct row){.rule = {.kind = RULE_BAD}};
	set_range(m, vaddr, vaddr, vaddr + 1, &ret->start, &ret->end);
	if (go_table_find(m, vaddr, &go) == 0) {
		ret->rule = go.rule;
		set_range(m, vaddr, go.start, go.end, &ret->start, &ret->end);
		return;
	}
	if (covered_row(m, vaddr, ret, &gap_start, &gap_end) != -ENOENT)
		return;
	gap_row(m, vaddr, gap_start, gap_end, ret);
	if (ret->rule.kind == RULE_GUESS_FP)
		clone_row(m, gap_start, gap_end, ret);
}

int cfi_compile_full(struct unwind_module *m, uint64_t vaddr, struct full_rule *ret)
{
	uint64_t gap_start, gap_end;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = find_entry(m, vaddr, &gap_start, &gap_end);
	if (r == 0) {
		r = run_entry(m, m->u->entry, vaddr, UNWIND_ALL_REGS, ret);
	} else if (r == -ENOENT && in_sigreturn(m, (uint32_t)(vaddr - m->base))) {
		arch_sigreturn_rule(ret);
		ret->start = m->sigreturn - 1;
		ret->end = m->sigreturn + (uint32_t)arch_sigreturn_bytes;
		r = 0;
	}
	if (r == 0)
		ret->module_id = m->id;
	return r;
}
