/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64: code without CFI. perf's register numbers (asm/perf_regs.h: x0 .. x29, lr, sp, pc) are
 * those of DWARF.
 */
#include "unwind/internal.h"

void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < 64; i++) {
		if (!(mask & UINT64_C(1) << i))
			continue;
		if (i < UNWIND_N_REGS) {
			ret->r[i] = *values;
			ret->valid |= UNWIND_REG_BIT(i);
		}
		values++;
	}
}

/* mov x8, #__NR_rt_sigreturn; svc #0 */
static const uint8_t sigreturn_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
const uint8_t *const arch_sigreturn_code = sigreturn_code;
const size_t arch_sigreturn_bytes = sizeof(sigreturn_code);

/*
 * sp points at struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo (128 bytes), then ucontext.
 * Its sigcontext follows a 128-byte signal mask, 16-byte aligned: fault_address, regs[31], sp, pc.
 */
void arch_sigreturn_rule(struct full_rule *ret)
{
	enum { SIGINFO = 128, SIGCONTEXT = 176, REGS = SIGINFO + SIGCONTEXT + 8 };

	*ret = (struct full_rule){.signal_frame = true};
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		ret->regs[i] = (struct reg_rule){
			.kind = REG_AT_REG, .reg = ARCH_REG_SP, .value = (int32_t)(REGS + i * 8)};
	ret->cfa = ret->regs[ARCH_REG_SP];
}

/* Not needed: the trampoline is in the vdso, and arch_sigreturn_rule() describes it. */
bool arch_signal_frame(const struct stack_copy *stack, uint64_t sp, struct unwind_regs *ret)
{
	(void)stack;
	(void)sp;
	(void)ret;
	return false;
}

bool arch_cfa_op_is_nop(uint8_t op)
{
	/* DW_CFA_AARCH64_negate_ra_state and .._with_pc: the walk strips signatures in any case. */
	return op == 0x2d || op == 0x2c;
}

static uint32_t insn(const uint8_t *code, size_t n, size_t at)
{
	uint32_t v = 0;

	if (at <= n && n - at >= sizeof(v))
		memcpy(&v, code + at, sizeof(v));
	return v;
}

enum {
	INSN_BYTES = 4,
	PUSH_X16_LR = 0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
	PUSH_FP_LR = 0xa9bf7bfd,  /* stp x29, x30, [sp, #-16]! */
	POP_FP_LR = 0xa8c17bfd,	  /* ldp x29, x30, [sp], #16 */
	PLT_FIRST_BYTES = 32,
};

/* Only the first entry of a PLT, which calls the resolver, touches the stack. */
static size_t find_insn(const uint8_t *code, size_t n, uint32_t wanted, size_t limit)
{
	size_t at = 0;

	while (at < n && at < limit && insn(code, n, at) != wanted)
		at += INSN_BYTES;
	return at < n && at < limit ? at : SIZE_MAX;
}

bool arch_stub_rule(enum stub_kind kind, const uint8_t *code, size_t n, size_t at, struct rule *ret)
{
	size_t pushed, popped = PLT_FIRST_BYTES;

	if (kind == STUB_PLT) {
		pushed = find_insn(code, n, PUSH_X16_LR, 2 * INSN_BYTES);
	} else {
		pushed = find_insn(code, n, PUSH_FP_LR, 3 * INSN_BYTES);
		popped = find_insn(code, n, POP_FP_LR, n);
		popped += popped == SIZE_MAX ? 0 : INSN_BYTES;
	}
	*ret = (struct rule){.kind = RULE_SP, .ra_words = RULE_RA_IN_LR};
	if (pushed == SIZE_MAX || at <= pushed || at >= popped)
		return pushed != SIZE_MAX || kind == STUB_PLT;
	ret->cfa_offset = 16;
	if (kind == STUB_PLT) {
		ret->ra_words = -1;
	} else {
		ret->ra_words = RULE_RA_BEHIND_FP;
		ret->fp_words = -2;
	}
	return true;
}

/* The caller's address is in lr, which is as lost as fp is. */
size_t arch_frame_sizes(const uint8_t *code, size_t n, uint32_t *ret, size_t max)
{
	(void)code;
	(void)n;
	(void)ret;
	(void)max;
	return 0;
}

enum arch_call arch_call_before(const uint8_t *code, uint64_t address, uint64_t *ret_target)
{
	(void)code;
	(void)address;
	(void)ret_target;
	return ARCH_NO_CALL;
}
