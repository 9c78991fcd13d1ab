/* SPDX-License-Identifier: Apache-2.0 */
#include <asm/perf_regs.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"
#include "util/cleanup.h"

/* ax bx cx dx si di bp sp ip, r8 .. r15 */
const uint64_t sample_user_regs = 0xff01ff;
const uint64_t sample_place_regs = UINT64_C(1) << PERF_REG_X86_SP | UINT64_C(1) << PERF_REG_X86_IP |
				   UINT64_C(1) << PERF_REG_X86_BP | UINT64_C(1) << PERF_REG_X86_DI;
const uint32_t arch_second_argument = PERF_REG_X86_SI;
const uint32_t arch_arguments[4] = {PERF_REG_X86_DI, PERF_REG_X86_SI, PERF_REG_X86_DX,
				    PERF_REG_X86_CX};
const uint32_t arch_go_arguments[4] = {PERF_REG_X86_AX, PERF_REG_X86_BX, PERF_REG_X86_CX,
				       PERF_REG_X86_DI};
const bool arch_has_arguments = true;
const uint32_t arch_sp = PERF_REG_X86_SP, arch_ip = PERF_REG_X86_IP;
const char sample_arch_name[] = "x86_64";

#define BIT(reg)  (UINT64_C(1) << PERF_REG_X86_##reg)
#define KNOWN(n)  (UINT64_C(0x5ca1ab1e00) + (n))
#define KNOWN_ASM "0x5ca1ab1e"

/* The values that the loop below puts into each register. */
static const struct {
	uint32_t reg;
	uint64_t value;
} known_registers[] = {
	{PERF_REG_X86_BX, KNOWN(0x01)},	 {PERF_REG_X86_BP, KNOWN(0x02)},
	{PERF_REG_X86_R12, KNOWN(0x03)}, {PERF_REG_X86_R13, KNOWN(0x04)},
	{PERF_REG_X86_R14, KNOWN(0x05)}, {PERF_REG_X86_R15, KNOWN(0x06)},
	{PERF_REG_X86_SI, KNOWN(0x07)},	 {PERF_REG_X86_DX, KNOWN(0x08)},
	{PERF_REG_X86_R8, KNOWN(0x09)},	 {PERF_REG_X86_R9, KNOWN(0x0a)},
	{PERF_REG_X86_R10, KNOWN(0x0b)},
};

__attribute__((noinline)) void arch_run_known(struct arch_known *k)
{
	__asm__ volatile("sub $128, %%rsp\n\t" /* skip the red zone */
			 "push %%rbx\n\tpush %%rbp\n\tpush %%r12\n\tpush %%r13\n\t"
			 "push %%r14\n\tpush %%r15\n\t"
			 "movabs $" KNOWN_ASM "01, %%rbx\n\tmovabs $" KNOWN_ASM "02, %%rbp\n\t"
			 "movabs $" KNOWN_ASM "03, %%r12\n\tmovabs $" KNOWN_ASM "04, %%r13\n\t"
			 "movabs $" KNOWN_ASM "05, %%r14\n\tmovabs $" KNOWN_ASM "06, %%r15\n\t"
			 "movabs $" KNOWN_ASM "07, %%rsi\n\tmovabs $" KNOWN_ASM "08, %%rdx\n\t"
			 "movabs $" KNOWN_ASM "09, %%r8\n\tmovabs $" KNOWN_ASM "0a, %%r9\n\t"
			 "movabs $" KNOWN_ASM "0b, %%r10\n\t"
			 "mov %%rsp, 8(%%rdi)\n\t"
			 "lea 1f(%%rip), %%rax\n\tmov %%rax, 16(%%rdi)\n\t"
			 "lea 2f(%%rip), %%rax\n\tmov %%rax, 24(%%rdi)\n"
			 "3:\tlea -1024(%%rsp), %%rsp\n\t"
			 "mov $200, %%eax\n"
			 "4:\tsub $1, %%eax\n\t"
			 "jnz 4b\n\t"
			 "lea 1024(%%rsp), %%rsp\n"
			 "1:\tmov %[call], %%eax\n\t"
			 "syscall\n"
			 "2:\tsubq $1, (%%rdi)\n\t"
			 "jnz 3b\n\t"
			 "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\t"
			 "pop %%rbp\n\tpop %%rbx\n\t"
			 "add $128, %%rsp\n\t"
			 :
			 : "D"(k), [call] "i"(SYS_getppid)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

bool arch_judge(const struct arch_known *k, uint64_t mask, const uint64_t *regs, uint64_t *valid)
{
	uint64_t ip;

	if (!(mask & BIT(IP)))
		return false;
	/* In a system call it is the address that the call returns to. */
	ip = arch_register(mask, regs, PERF_REG_X86_IP);
	if (ip <= k->begin || ip > k->end)
		return false;
	if ((mask & BIT(SP)) && arch_register(mask, regs, PERF_REG_X86_SP) != k->sp)
		*valid &= ~BIT(SP);
	for (size_t i = 0; i < ARRAY_SIZE(known_registers); i++) {
		uint32_t reg = known_registers[i].reg;

		if ((mask & (UINT64_C(1) << reg)) &&
		    arch_register(mask, regs, reg) != known_registers[i].value)
			*valid &= ~(UINT64_C(1) << reg);
	}
	return true;
}

/*
 * The checked registers. A system call overwrites rcx, r11 and the flags, and rax, which is -ENOSYS
 * (before 4.0 the call's number) until the result is there: 0 only in what clone() has made.
 */
uint64_t arch_checkable(void)
{
	uint64_t valid = BIT(IP) | BIT(SP) | BIT(DI) | BIT(AX);

	for (size_t i = 0; i < ARRAY_SIZE(known_registers); i++)
		valid |= UINT64_C(1) << known_registers[i].reg;
	return valid;
}

uint64_t arch_unproved(void)
{
	return BIT(IP) | BIT(SP);
}
