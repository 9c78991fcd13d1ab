/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <inttypes.h>

#include "unwind/explain.h"
#include "unwind/internal.h"
#include "util/text.h"

enum {
	MAX_FRAMES = 1024,
	MAX_PATH = 256,
	MAX_DAMAGED = 256 * 1024, /* bytes of code without a usable rule */
};

/* By DWARF number. The column of the return address is called ra, as in readelf. */
static const char *const reg_names[UNWIND_N_REGS] = {
#ifdef UNWIND_AARCH64
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "lr",  "sp",  "pc",
#elif defined(UNWIND_RISCV64)
	"zero", "ra", "sp", "gp", "tp",	 "t0",	"t1", "t2", "s0", "s1", "a0",
	"a1",	"a2", "a3", "a4", "a5",	 "a6",	"a7", "s2", "s3", "s4", "s5",
	"s6",	"s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "pc",
#else
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip",
#endif
};

static const char *column_name(int reg)
{
	return reg == ARCH_REG_RA ? "ra" : reg_names[reg];
}

/* ---- Rules ---- */

static void print_offset(FILE *out, const char *base, int64_t offset)
{
	(void)fprintf(out, offset ? "%s%+" PRId64 : "%s", base, offset);
}

/* The operators that expr.c knows. */
static const struct {
	uint8_t atom;
	const char *name;
} op_names[] = {
	{DW_OP_deref, "deref"}, {DW_OP_deref_size, "deref_size"},
	{DW_OP_dup, "dup"},	{DW_OP_drop, "drop"},
	{DW_OP_over, "over"},	{DW_OP_pick, "pick"},
	{DW_OP_swap, "swap"},	{DW_OP_rot, "rot"},
	{DW_OP_abs, "abs"},	{DW_OP_and, "and"},
	{DW_OP_div, "div"},	{DW_OP_minus, "minus"},
	{DW_OP_mod, "mod"},	{DW_OP_mul, "mul"},
	{DW_OP_neg, "neg"},	{DW_OP_not, "not"},
	{DW_OP_or, "or"},	{DW_OP_plus, "plus"},
	{DW_OP_shl, "shl"},	{DW_OP_shr, "shr"},
	{DW_OP_shra, "shra"},	{DW_OP_xor, "xor"},
	{DW_OP_eq, "eq"},	{DW_OP_ge, "ge"},
	{DW_OP_gt, "gt"},	{DW_OP_le, "le"},
	{DW_OP_lt, "lt"},	{DW_OP_ne, "ne"},
	{DW_OP_bra, "bra"},	{DW_OP_skip, "skip"},
	{DW_OP_nop, "nop"},	{DW_OP_plus_uconst, "plus"},
};

static void print_op(FILE *out, const struct expr_op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		(void)fprintf(out, "%d", op->atom - DW_OP_lit0);
		return;
	}
	if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) {
		(void)fprintf(out, "%" PRId64, op->number);
		return;
	}
	if ((op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) || op->atom == DW_OP_bregx) {
		print_offset(out, op->reg < UNWIND_N_REGS ? reg_names[op->reg] : "?", op->number);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(op_names); i++) {
		if (op_names[i].atom != op->atom)
			continue;
		(void)fputs(op_names[i].name, out);
		if (op->atom == DW_OP_plus_uconst || op->atom == DW_OP_pick ||
		    op->atom == DW_OP_deref_size || op->atom == DW_OP_bra || op->atom == DW_OP_skip)
			(void)fprintf(out, "(%" PRId64 ")", op->number);
		return;
	}
	(void)fprintf(out, "op %#x", op->atom);
}

static void print_expression(FILE *out, const struct full_rule *f, const struct reg_rule *r)
{
	(void)fputc('{', out);
	for (unsigned int i = 0; i < r->n_ops; i++) {
		if (i)
			(void)fputc(' ', out);
		print_op(out, &f->ops[r->op + i]);
	}
	(void)fputc('}', out);
}

/* In the notation of readelf: c is the CFA, [ ] the value saved at that address. */
static void print_rule(FILE *out, const struct full_rule *f, const struct reg_rule *r)
{
	switch (r->kind) {
	case REG_UNDEFINED:
		(void)fputs("undefined", out);
		break;
	case REG_SAME:
		(void)fputs("same", out);
		break;
	case REG_AT_CFA:
		(void)fputc('[', out);
		print_offset(out, "c", r->value);
		(void)fputc(']', out);
		break;
	case REG_IS_CFA:
		print_offset(out, "c", r->value);
		break;
	case REG_IN_REG:
		(void)fputs(reg_names[r->reg], out);
		break;
	case REG_AT_REG:
		(void)fputc('[', out);
		print_offset(out, reg_names[r->reg], r->value);
		(void)fputc(']', out);
		break;
	case REG_AT_EXPR:
		(void)fputc('[', out);
		print_expression(out, f, r);
		(void)fputc(']', out);
		break;
	case REG_IS_EXPR:
		print_expression(out, f, r);
		break;
	default:
		(void)fputs("beyond the limits", out);
		break;
	}
}

static void print_full(FILE *out, const struct full_rule *f)
{
	(void)fputs("CFA=", out);
	if (f->cfa.kind == REG_IS_CFA)
		print_offset(out, reg_names[f->cfa.reg], f->cfa.value);
	else
		print_rule(out, f, &f->cfa);
	for (int i = 0; i < ARCH_N_CFI_REGS; i++) {
		bool is_usual = f->regs[i].kind == REG_SAME || f->regs[i].kind == REG_UNDEFINED ||
				(i == ARCH_REG_SP && f->regs[i].kind == REG_IS_CFA &&
				 f->regs[i].value == 0);

		if (is_usual && i != ARCH_REG_RA)
			continue;
		(void)fprintf(out, " %s=", column_name(i));
		print_rule(out, f, &f->regs[i]);
	}
	if (f->signal_frame)
		(void)fputs(" (signal frame)", out);
}

/* Words from the CFA to the return address; 0: it is in the link register. */
static int return_words(struct rule rule)
{
	if (!ARCH_HAS_LR)
		return -1;
	return rule.ra_words == RULE_RA_BEHIND_FP ? rule.fp_words + 1 : rule.ra_words;
}

static void print_compact(FILE *out, struct rule rule)
{
	switch (rule.kind) {
	case RULE_SP:
	case RULE_FP:
	case RULE_CLONE:
	case RULE_SP_TRAP:
	case RULE_OTHER_STACK:
		(void)fputs("CFA=", out);
		print_offset(out, reg_names[rule.kind == RULE_FP ? ARCH_REG_FP : ARCH_REG_SP],
			     rule.cfa_offset);
		if (rule.fp_words)
			(void)fprintf(out, " %s=[c%+d]", reg_names[ARCH_REG_FP], rule.fp_words * 8);
		if (return_words(rule) == 0)
			(void)fputs(" ra=lr", out);
		else
			(void)fprintf(out, " ra=[c%+d]", return_words(rule) * 8);
		if (rule.kind == RULE_SP_TRAP)
			(void)fputs(", its caller was interrupted", out);
		if (rule.kind == RULE_CLONE)
			(void)fputs(", unless it is the new thread", out);
		if (rule.kind == RULE_OTHER_STACK)
			(void)fputs(", if it has not moved to another stack", out);
		break;
	case RULE_END:
		(void)fputs("the outermost frame", out);
		break;
	case RULE_GUESS_FP:
		(void)fprintf(out, "frame pointer: CFA=%s+16 %s=[c-16] ra=[c-8]",
			      reg_names[ARCH_REG_FP], reg_names[ARCH_REG_FP]);
		break;
	case RULE_SIGNAL:
		(void)fputs("signal frame pushed by the kernel", out);
		break;
	case RULE_NONE:
		(void)fputs("the file cannot be read", out);
		break;
	default:
		(void)fputs("damaged, or beyond the limits", out);
		break;
	}
}

/* ---- Where a row comes from ---- */

struct origin {
	const char *name;
	bool has_full;
	struct full_rule full;
	uint64_t start, end; /* of the entry; 0, 0: none */
};

static const char *stub_at(const struct unwind_module *m, uint64_t rel)
{
	for (uint32_t i = 0; i < m->n_stubs; i++) {
		if (rel >= m->stubs[i].start && rel < m->stubs[i].end)
			return m->stubs[i].kind == STUB_PLT ? ".plt" : ".init";
	}
	return NULL;
}

/* In the order in which the walk looks. */
static void find_origin(struct unwind_module *m, uint64_t vaddr, struct rule rule,
			struct origin *ret)
{
	const struct cfi_entry *e = m->u->entry;
	uint64_t gap_start = m->base, gap_end = m->base + m->span;
	struct go_rule go;
	int r;

	m->u->work = 0;
	*ret = (struct origin){.name = "none"};
	if (go_table_find(m, vaddr, &go) == 0) {
		ret->name = ".gopclntab";
		return;
	}
	r = entry_find(m, &m->eh_frame, vaddr, m->u->entry, &gap_start, &gap_end);
	ret->name = ".eh_frame";
	if (r == -ENOENT) {
		ret->name = ".debug_frame";
		r = debug_frame_load(m) == 0 ? entry_find(m, &m->debug_frame, vaddr, m->u->entry,
							  &gap_start, &gap_end)
					     : -ENOENT;
	}
	if (r == 0) {
		ret->start = e->start;
		ret->end = e->end;
		ret->has_full = cfi_compile_full(m, vaddr, &ret->full) == 0;
	} else if (r == -ENOENT) {
		ret->name = stub_at(m, vaddr - m->base);
		if (!ret->name)
			ret->name = rule.kind == RULE_END ? "entry" : "none";
	}
}

/* ---- The rows of a file ---- */

static void print_row(FILE *out, uint64_t start, uint64_t end, struct rule rule,
		      const struct origin *o)
{
	(void)fprintf(out, "%12" PRIx64 "-%-12" PRIx64 " %-12s ", start, end, o->name);
	if (o->has_full)
		print_full(out, &o->full);
	else
		print_compact(out, rule);
	(void)fputc('\n', out);
}

struct listing {
	FILE *out;
	struct unwind_module *m;
	uint64_t entry;	  /* the start of the FDE shown last */
	uint64_t damaged; /* bytes */
};

static bool same_rule(struct rule a, struct rule b)
{
	return a.kind == b.kind && a.ra_words == b.ra_words && a.fp_words == b.fp_words &&
	       a.cfa_offset == b.cfa_offset;
}

/* Joins adjacent rows of one byte (stubs, damaged entries) with the same rule into one line. */
static uint64_t list_row(struct listing *l, uint64_t at, uint64_t limit)
{
	struct unwind_module *m = l->m;
	struct origin origin, next_origin;
	struct row row, next;
	uint64_t end;

	m->u->work = 0;
	cfi_compile_row(m, at, &row);
	end = m->base + row.end;
	find_origin(m, at, row.rule, &origin);
	while (row.end - row.start == 1 && !origin.has_full && end < limit) {
		m->u->work = 0;
		cfi_compile_row(m, end, &next);
		if (next.end - next.start != 1 || !same_rule(row.rule, next.rule) ||
		    l->damaged > MAX_DAMAGED)
			break;
		find_origin(m, end, next.rule, &next_origin);
		if (next_origin.has_full || next_origin.name != origin.name)
			break;
		l->damaged += row.rule.kind == RULE_BAD;
		end++;
	}
	if (end > limit || end <= at)
		end = end <= at ? at + 1 : limit;
	if (origin.end && origin.start != l->entry)
		(void)fprintf(l->out, "FDE %" PRIx64 "-%" PRIx64 "\n", origin.start, origin.end);
	l->entry = origin.start;
	print_row(l->out, at, end, row.rule, &origin);
	return end;
}

static void print_module(FILE *out, const struct unwind_module *m)
{
	char path[MAX_PATH];

	(void)text_clean(path, sizeof(path), m->name, SIZE_MAX);
	(void)fprintf(out, "%s: build id ", path);
	for (unsigned int i = 0; i < m->n_build_id; i++)
		(void)fprintf(out, "%02x", m->build_id[i]);
	(void)fprintf(out, "%s\n", m->n_build_id ? "" : "none");
	(void)fprintf(out, ".eh_frame %zu bytes, %s; .debug_frame %zu bytes%s; .gopclntab %s\n",
		      m->eh_frame.data.n,
		      m->eh_frame.table ? "with a search table" : "no search table", m->debug_raw.n,
		      m->debug_raw.n && m->debug_compression != DEBUG_PLAIN ? ", compressed" : "",
		      m->go.usable ? "in use" : "none");
}

static bool in_code(const struct unwind_module *m, uint64_t address)
{
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];

		if (s->exec && address - s->vaddr < s->memsz)
			return true;
	}
	return false;
}

int explain_module(FILE *out, struct unwinder *u, struct unwind_module *m, const uint64_t *address)
{
	struct listing l = {.out = out, .m = m, .entry = UINT64_MAX};

	if (address && !in_code(m, *address))
		return -ENOENT;
	print_module(out, m);
	if (address) {
		struct origin origin;
		struct row row;

		u->work = 0;
		cfi_compile_row(m, *address, &row);
		find_origin(m, *address, row.rule, &origin);
		if (origin.end)
			(void)fprintf(out, "FDE %" PRIx64 "-%" PRIx64 "\n", origin.start,
				      origin.end);
		print_row(out, m->base + row.start, m->base + row.end, row.rule, &origin);
		return 0;
	}
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];
		uint64_t end = s->vaddr + s->memsz;

		for (uint64_t at = s->vaddr; s->exec && at < end;) {
			at = list_row(&l, at, end);
			if (l.damaged > MAX_DAMAGED)
				return -E2BIG;
		}
	}
	return 0;
}

/* ---- A walk ---- */

struct telling {
	FILE *out;
	struct recorded *r;
	bool begun;
};

static void print_place(const struct telling *t, uint64_t address, const struct unwind_mapping *m)
{
	uint32_t module = m ? t->r->mappings.items[m->tag].module : RECORDED_ANONYMOUS;
	char path[MAX_PATH];

	if (!m || module >= t->r->modules.n) {
		(void)fprintf(t->out, "%#" PRIx64 " %s\n", address,
			      !m		? "in no executable mapping"
			      : m->file_missing ? "in a file that could not be opened"
						: "in memory without a file");
		return;
	}
	(void)text_clean(path, sizeof(path), t->r->modules.items[module].path, SIZE_MAX);
	(void)fprintf(t->out, "%s+%#" PRIx64 "\n", path, address - m->bias);
}

/* Prints a word of the stack and what it is used for. */
static void print_read(const struct telling *t, const struct walk_step *s, const char *what,
		       uint64_t addr)
{
	uint64_t value;

	if (stack_read(s->stack, addr, &value))
		(void)fprintf(t->out,
			      "        read  %-4s %#" PRIx64 " from %#" PRIx64 " (stack+%" PRIu64
			      ")\n",
			      what, value, addr, addr - s->stack->start);
	else
		(void)fprintf(t->out,
			      "        read  %-4s from %#" PRIx64
			      ": not in the copy of the stack\n",
			      what, addr);
}

static void print_reads(const struct telling *t, const struct walk_step *s, uint64_t cfa,
			const struct full_rule *f)
{
	uint64_t sp = s->regs->r[ARCH_REG_SP];

	for (int i = ARCH_N_CFI_REGS - 1; i >= 0; i--) {
		const struct reg_rule *r = &f->regs[i];
		uint64_t addr = cfa + (uint64_t)(int64_t)r->value;

		if (r->kind == REG_AT_REG && s->regs->valid & UNWIND_REG_BIT(r->reg))
			addr = s->regs->r[r->reg] + (uint64_t)(int64_t)r->value;
		else if (r->kind != REG_AT_CFA)
			continue;
		if (r->kind == REG_AT_CFA && addr < sp && i != ARCH_REG_RA && !f->signal_frame)
			(void)fprintf(t->out,
				      "        keep  %-4s its slot is below sp: already popped\n",
				      column_name(i));
		else
			print_read(t, s, column_name(i), addr);
	}
}

static bool find_cfa(const struct walk_step *s, const struct full_rule *f, uint64_t *ret)
{
	if (f->cfa.kind == REG_IS_EXPR)
		return expr_run(f->ops + f->cfa.op, f->cfa.n_ops, s->regs, s->stack, NULL, ret) ==
		       STEP_OK;
	if (f->cfa.reg >= UNWIND_N_REGS || !(s->regs->valid & UNWIND_REG_BIT(f->cfa.reg)))
		return false;
	*ret = s->regs->r[f->cfa.reg] + (uint64_t)(int64_t)f->cfa.value;
	return f->cfa.kind == REG_IS_CFA ||
	       (f->cfa.kind == REG_AT_REG && stack_read(s->stack, *ret, ret));
}

/* A compact rule as a full one, with only what the walk reads. */
static struct full_rule widen(struct rule rule)
{
	struct full_rule f = {.cfa = {.kind = REG_IS_CFA,
				      .reg = rule.kind == RULE_FP ? ARCH_REG_FP : ARCH_REG_SP,
				      .value = rule.cfa_offset}};

	if (return_words(rule) != 0)
		f.regs[ARCH_REG_RA] =
			(struct reg_rule){.kind = REG_AT_CFA, .value = return_words(rule) * 8};
	if (rule.fp_words)
		f.regs[ARCH_REG_FP] =
			(struct reg_rule){.kind = REG_AT_CFA, .value = rule.fp_words * 8};
	return f;
}

static void print_step(const struct telling *t, const struct walk_step *s)
{
	struct full_rule f;
	uint64_t cfa;

	switch (s->rule.kind) {
	case RULE_SP:
	case RULE_FP:
	case RULE_CLONE:
	case RULE_SP_TRAP:
	case RULE_OTHER_STACK:
		f = widen(s->rule);
		break;
	case RULE_FULL:
		f = *s->full;
		break;
	case RULE_GUESS_FP:
		f = widen((struct rule){.kind = RULE_FP,
					.ra_words = -1,
					.fp_words = -2,
					.cfa_offset = 16 + ARCH_FP_TO_PAIR});
		break;
	default:
		return;
	}
	if (!find_cfa(s, &f, &cfa)) {
		(void)fputs("        the CFA cannot be computed from what is known\n", t->out);
		return;
	}
	(void)fprintf(t->out, "        CFA   %#" PRIx64 " (stack+%" PRId64 ")\n", cfa,
		      (int64_t)(cfa - s->stack->start));
	print_reads(t, s, cfa, &f);
}

static void on_step(void *ctx, const struct walk_step *s)
{
	struct telling *t = ctx;
	struct unwind_module *m = s->mapping->module;
	struct origin origin = {.name = "none"};

	if (s->n == 0 && t->begun)
		(void)fputs("a rule needs another register: the walk starts again with all of "
			    "them\n",
			    t->out);
	t->begun = true;
	(void)fprintf(t->out, "#%-3zu ", s->n);
	print_place(t, s->address, s->mapping);
	(void)fprintf(t->out, "        sp    %#" PRIx64 " (stack+%" PRId64 ")\n",
		      s->regs->r[ARCH_REG_SP],
		      (int64_t)(s->regs->r[ARCH_REG_SP] - s->stack->start));
	if (m && s->address - s->mapping->bias - m->base < m->span)
		find_origin(m, s->address - s->mapping->bias, s->rule, &origin);
	(void)fprintf(t->out, "        rule  %s: ", origin.name);
	if (origin.has_full)
		print_full(t->out, &origin.full);
	else
		print_compact(t->out, s->rule);
	(void)fputc('\n', t->out);
	print_step(t, s);
}

static const char *const reasons[UNWIND_N_OUTCOMES] = {
	[UNWIND_COMPLETE] = "the outermost frame was reached",
	[UNWIND_TRUNCATED] = "the next value lies beyond the copied stack, or on another stack",
	[UNWIND_NO_MAPPING] = "no executable mapping covers the last address",
	[UNWIND_NO_FILE] = "the file of the last frame could not be opened",
	[UNWIND_NO_CFI] = "no CFI covers the last frame, and its frame pointer is not usable",
	[UNWIND_BAD_CFI] = "the CFI of the last frame is damaged or cannot be computed",
	[UNWIND_NO_PROGRESS] = "the walk makes no progress: a loop, or a wrong rule",
	[UNWIND_TOO_DEEP] = "more frames than are kept",
};

void explain_sample(FILE *out, struct unwinder *u, struct recorded *r, uint32_t i)
{
	static struct unwind_frame frames[MAX_FRAMES];
	const struct recorded_sample *s = &r->samples.items[i];
	struct telling t = {out, r, false};
	enum unwind_outcome outcome;
	char label[MAX_PATH];
	size_t n;

	(void)text_clean(label, sizeof(label), s->label, SIZE_MAX);
	(void)fprintf(out,
		      "sample %u of %u%s%s: pc %#" PRIx64 ", sp %#" PRIx64 ", %zu bytes of stack\n",
		      i, r->samples.n, *label ? ", " : "", label, s->regs.r[ARCH_REG_PC],
		      s->regs.r[ARCH_REG_SP], s->n_stack);
	u->trace = on_step;
	u->trace_ctx = &t;
	outcome = recorded_walk(r, u, i, frames, MAX_FRAMES, &n);
	u->trace = NULL;
	/* A frame without a mapping has no rule to print. */
	if (n > 0 && frames[n - 1].tag == UINT32_MAX) {
		(void)fprintf(out, "#%-3zu ", n - 1);
		print_place(&t, frames[n - 1].address, NULL);
	}
	(void)fprintf(out, "%zu frames, %s: %s\n", n, unwind_outcome_name(outcome),
		      reasons[outcome]);
}
