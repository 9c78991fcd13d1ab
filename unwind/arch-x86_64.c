/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86_64: psABI register numbers for perf's, and code that linkers make without CFI. The perf
 * numbers are kernel ABI (asm/perf_regs.h): ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8
 * .. r15.
 */
#include "unwind/internal.h"

#define N_PERF_REGS 24
#define NO_REG	    0xff

static const uint8_t dwarf_of_perf[N_PERF_REGS] = {
	0,	3,	2,	1,	4, 5, 6,  7,  16, NO_REG, NO_REG, NO_REG,
	NO_REG, NO_REG, NO_REG, NO_REG, 8, 9, 10, 11, 12, 13,	  14,	  15,
};

void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < 64; i++) {
		if (!(mask & UINT64_C(1) << i))
			continue;
		if (i < N_PERF_REGS && dwarf_of_perf[i] != NO_REG) {
			ret->r[dwarf_of_perf[i]] = *values;
			ret->valid |= UNWIND_REG_BIT(dwarf_of_perf[i]);
		}
		values++;
	}
}

static bool starts_with(const uint8_t *code, size_t n, size_t at, const char *bytes, size_t n_bytes)
{
	return at <= n && n - at >= n_bytes && memcmp(code + at, bytes, n_bytes) == 0;
}
#define STARTS(at, bytes) starts_with(code, n, (at), (bytes), sizeof(bytes) - 1)

#define ENDBR64	  "\xf3\x0f\x1e\xfa"
#define JMP_MEM	  "\xff\x25"	     /* jmp *disp32(%rip), 6 bytes */
#define PUSH_MEM  "\xff\x35"	     /* push disp32(%rip), 6 bytes */
#define PUSH_IMM  "\x68"	     /* push imm32, 5 bytes */
#define SUB_SP_8  "\x48\x83\xec\x08" /* sub $8,%rsp */
#define ADD_SP_8  "\x48\x83\xc4\x08"
#define PLT_ENTRY 16

/* The trampoline is in the C library. glibc's has CFI; for others see arch_signal_frame(). */
const uint8_t *const arch_sigreturn_code = NULL;
const size_t arch_sigreturn_bytes = 0;

void arch_sigreturn_rule(struct full_rule *ret)
{
	(void)ret;
}

/*
 * struct ucontext (asm-generic/ucontext.h, asm/sigcontext.h): three flag bits, a link that is
 * always 0, the signal stack, then struct sigcontext_64. In 64-bit programs its cs, gs and fs have
 * one possible value each; ss has one too, or is 0 before Linux 4.6.
 */
bool arch_signal_frame(const struct stack_copy *stack, uint64_t sp, struct unwind_regs *ret)
{
	enum { LINK = 8, CONTEXT = 40, FLAGS = CONTEXT + 17 * 8, SEGMENTS = FLAGS + 8 };
	enum { KNOWN_FLAGS = 7, ALWAYS_SET = 2, USER_CS = 0x33, USER_SS = 0x2b };
	/* DWARF register numbers in the order of struct sigcontext_64. */
	static const uint8_t order[UNWIND_N_REGS] = {8, 9, 10, 11, 12, 13, 14, 15, 5,
						     4, 6, 3,  1,  0,  2,  7,  16};
	const struct stack_copy copy = {stack->bytes, stack->start, stack->n, NULL};
	uint64_t uc_flags, link, flags, segments;

	if (!stack_read(&copy, sp, &uc_flags) || !stack_read(&copy, sp + LINK, &link) ||
	    !stack_read(&copy, sp + FLAGS, &flags) || !stack_read(&copy, sp + SEGMENTS, &segments))
		return false;
	if (uc_flags > KNOWN_FLAGS || link != 0 || !(flags & ALWAYS_SET) || flags > UINT32_MAX ||
	    (segments & UINT64_C(0xffffffffffff)) != USER_CS ||
	    (segments >> 48 != USER_SS && segments >> 48 != 0))
		return false;
	*ret = (struct unwind_regs){.valid = UNWIND_ALL_REGS};
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		(void)stack_read(&copy, sp + CONTEXT + 8 * i, &ret->r[order[i]]);
	return true;
}

bool arch_cfa_op_is_nop(uint8_t op)
{
	(void)op;
	return false;
}

/*
 * A lazy entry is `jmp *slot; push index; jmp first`, or `endbr64; push index; jmp first`, and the
 * first entry is `push module; jmp *resolver`; the return address moves up with each push.
 */
static int32_t plt_cfa_offset(const uint8_t *code, size_t n, size_t at)
{
	size_t entry = at - at % PLT_ENTRY, in = at % PLT_ENTRY;

	if (STARTS(entry, PUSH_MEM))
		return in >= 6 ? 24 : 16;
	if (STARTS(entry, JMP_MEM) && STARTS(entry + 6, PUSH_IMM))
		return in >= 11 ? 16 : 8;
	if (STARTS(entry, ENDBR64 PUSH_IMM))
		return in >= 9 ? 16 : 8;
	return 8;
}

/* _init and _fini of crti.o: sub $8,%rsp; ...; add $8,%rsp; ret. */
static int32_t init_cfa_offset(const uint8_t *code, size_t n, size_t at)
{
	size_t body = STARTS(0, ENDBR64) ? 4 : 0, end;

	if (!STARTS(body, SUB_SP_8))
		return 0;
	body += 4;
	for (end = body; end + 4 <= n && !STARTS(end, ADD_SP_8); end++)
		;
	return at >= body && at < end + 4 ? 16 : 8;
}

bool arch_stub_rule(enum stub_kind kind, const uint8_t *code, size_t n, size_t at, struct rule *ret)
{
	int32_t offset =
		kind == STUB_PLT ? plt_cfa_offset(code, n, at) : init_cfa_offset(code, n, at);

	if (offset > 0)
		*ret = (struct rule){
			.kind = RULE_SP, .ra_words = ARCH_RA_WORDS, .cfa_offset = offset};
	return offset > 0;
}
