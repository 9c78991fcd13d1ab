/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame pointer of a thread that was blocked before anybody recorded its registers. The kernel
 * tells only its sp and pc (/proc/PID/syscall), and code with frame pointers (all of Ubuntu's since
 * 24.04, of Fedora's since 38) has nothing else in its CFI.
 *
 * A function saves rbp, moves sp there, pushes what else it saves, and takes the rest of its frame
 * with one sub. So its rbp is above sp by what CFI says is pushed and the operand of that sub. The
 * instructions before the sub are not disassembled, and a call may have pushed arguments. So these
 * are only possible places. One is right if the return address there is behind a call of this
 * function, and no other place has such a word. All of it holds only while the function calls: in a
 * prologue or an epilogue, where a page may be waited for, there is less below rbp.
 */
#include "unwind/internal.h"

enum { MAX_PROLOGUE = 256 };

struct prologue {
	const uint8_t *code;
	size_t n;
	uint32_t *sizes;
	size_t n_sizes, max;
};

static int scan_prologue(void *arg)
{
	struct prologue *s = arg;

	s->n_sizes = arch_frame_sizes(s->code, s->n, s->sizes, s->max);
	return 0;
}

/* n bytes of code; NULL: they are not in the file's. */
static const uint8_t *code_at(const struct unwind_module *m, uint64_t vaddr, size_t n)
{
	uint64_t at = vaddr - m->text.addr;

	if (!m->text.data || vaddr < m->text.addr || at > m->text.n || n > m->text.n - at)
		return NULL;
	return m->text.data + at;
}

/* Bytes below the saved frame pointer that were pushed; UINT32_MAX: not such a frame. */
static uint32_t pushed_bytes(const struct full_rule *f)
{
	const struct reg_rule *fp = &f->regs[ARCH_REG_FP];
	int32_t lowest = -16;

	if (f->cfa.kind != REG_IS_CFA || f->cfa.reg != ARCH_REG_FP || f->cfa.value != 16 ||
	    fp->kind != REG_AT_CFA || fp->value != -16 || f->n_ops > 0)
		return UINT32_MAX;
	for (unsigned int reg = 0; reg < UNWIND_N_REGS; reg++) {
		const struct reg_rule *rule = &f->regs[reg];

		if (rule->kind == REG_AT_CFA && rule->value < lowest && rule->value % 8 == 0)
			lowest = rule->value;
	}
	return (uint32_t)(-16 - lowest);
}

static bool is_behind_system_call(const struct unwind_module *m, uint64_t vaddr)
{
	static const char call[] = ARCH_SYSTEM_CALL;
	const uint8_t *code = code_at(m, vaddr - (sizeof(call) - 1), sizeof(call) - 1);

	return code && memcmp(code, call, sizeof(call) - 1) == 0;
}

bool lost_fp_places(struct unwind_module *m, uint64_t vaddr, bool innermost, struct lost_fp *ret)
{
	struct prologue s = {.sizes = ret->above_sp, .max = ARRAY_SIZE(ret->above_sp)};
	struct full_rule f;
	uint32_t pushed;

	if (ARCH_HAS_LR || (innermost && !is_behind_system_call(m, vaddr)) ||
	    work_exhausted(m->u) || cfi_compile_full(m, vaddr, &f) < 0)
		return false;
	pushed = pushed_bytes(&f);
	ret->function = m->u->entry->start;
	s.n = (size_t)(vaddr - ret->function);
	if (s.n > MAX_PROLOGUE)
		s.n = MAX_PROLOGUE;
	s.code = code_at(m, ret->function, s.n);
	if (pushed == UINT32_MAX || !s.code)
		return false;
	if (guard_run(scan_prologue, &s) < 0) {
		m->broken = true;
		return false;
	}
	if (s.n_sizes > s.max)
		return false;
	/* Clang pushes one register more instead of a sub of 8. */
	if (s.n_sizes == 0) {
		s.sizes[s.n_sizes++] = 0;
		s.sizes[s.n_sizes++] = 8;
	}
	for (size_t i = 0; i < s.n_sizes; i++)
		s.sizes[i] += pushed;
	ret->n = s.n_sizes;
	return true;
}

struct call_site {
	const uint8_t *code; /* the bytes before the return address */
	uint64_t address;    /* ELF virtual address of the return address */
	uint64_t target;
	enum arch_call call;
};

static int look_before(void *arg)
{
	struct call_site *l = arg;

	l->call = arch_call_before(l->code, l->address, &l->target);
	return 0;
}

bool lost_fp_calls(struct unwind_module *m, uint64_t address, uint64_t function)
{
	struct call_site l = {.address = address,
			      .code = code_at(m, address - ARCH_CALL_BYTES, ARCH_CALL_BYTES)};

	if (!l.code)
		return false;
	if (guard_run(look_before, &l) < 0) {
		m->broken = true;
		return false;
	}
	if (l.call != ARCH_CALL_DIRECT || l.target == function)
		return l.call != ARCH_NO_CALL;
	for (uint32_t i = 0; i < m->n_stubs; i++) {
		const struct stub_range *s = &m->stubs[i];

		if (l.target >= m->base + s->start && l.target < m->base + s->end)
			return true;
	}
	return false;
}
