/* SPDX-License-Identifier: Apache-2.0 */
/* riscv64: code without CFI. Registers by DWARF number, with the pc behind them. */
#include "unwind/internal.h"

/* perf's numbers (asm/perf_regs.h) are those of DWARF, but x0, which is always 0, is the pc. */
void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < 64; i++) {
		unsigned int reg = i == 0 ? ARCH_REG_PC : i;

		if (!(mask & UINT64_C(1) << i))
			continue;
		if (reg < UNWIND_N_REGS) {
			ret->r[reg] = *values;
			ret->valid |= UNWIND_REG_BIT(reg);
		}
		values++;
	}
}

/* li a7, __NR_rt_sigreturn; ecall */
static const uint8_t sigreturn_code[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00};
const uint8_t *const arch_sigreturn_code = sigreturn_code;
const size_t arch_sigreturn_bytes = sizeof(sigreturn_code);

/*
 * sp points at struct rt_sigframe (arch/riscv/kernel/signal.c): siginfo (128 bytes), then ucontext.
 * Its sigcontext follows a 128-byte signal mask, 16-byte aligned: pc, x1 .. x31.
 */
void arch_sigreturn_rule(struct full_rule *ret)
{
	enum { SIGINFO = 128, SIGCONTEXT = 176, REGS = SIGINFO + SIGCONTEXT };

	*ret = (struct full_rule){.signal_frame = true};
	for (unsigned int i = 1; i < UNWIND_N_REGS; i++)
		ret->regs[i] = (struct reg_rule){
			.kind = REG_AT_REG,
			.reg = ARCH_REG_SP,
			.value = (int32_t)(REGS + (i == ARCH_REG_PC ? 0 : i) * 8)};
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
	(void)op;
	return false;
}

/* No entry of a PLT touches the stack, and the return address stays in ra: they jump by t1. */
bool arch_stub_rule(enum stub_kind kind, const uint8_t *code, size_t n, size_t at, struct rule *ret)
{
	(void)code;
	(void)n;
	(void)at;
	*ret = (struct rule){.kind = RULE_SP, .ra_words = RULE_RA_IN_LR};
	return kind == STUB_PLT;
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
