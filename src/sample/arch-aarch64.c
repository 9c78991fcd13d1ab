/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64's kernel_entry saves every register, so all of them should be right inside the kernel,
 * too, except x8, the number of the system call. x0 is its first argument until it has its result.
 */
#include <asm/perf_regs.h>
#include <sys/syscall.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"

/* x0 .. x3: arguments. x12, x13: in HotSpot's interpreter the method that is entered, and where its
 * caller's stack ended. x16 and up: PLT stubs and trampolines use x16 and x17; x19 .. x28 are
 * call-saved. */
const uint64_t sample_user_regs = UINT64_C(0x1ffff300f);
const uint64_t sample_place_regs =
	UINT64_C(1) << PERF_REG_ARM64_SP | UINT64_C(1) << PERF_REG_ARM64_PC |
	UINT64_C(1) << PERF_REG_ARM64_X29 | UINT64_C(1) << PERF_REG_ARM64_LR |
	UINT64_C(1) << PERF_REG_ARM64_X0;
const uint32_t arch_second_argument = PERF_REG_ARM64_X1;
const uint32_t arch_arguments[4] = {PERF_REG_ARM64_X0, PERF_REG_ARM64_X1, PERF_REG_ARM64_X2,
				    PERF_REG_ARM64_X3};
const uint32_t arch_go_arguments[4] = {PERF_REG_ARM64_X0, PERF_REG_ARM64_X1, PERF_REG_ARM64_X2,
				       PERF_REG_ARM64_X3};
const bool arch_has_arguments = true;
const uint32_t arch_sp = PERF_REG_ARM64_SP, arch_ip = PERF_REG_ARM64_PC;
const char sample_arch_name[] = "aarch64";

#define BIT(reg) (UINT64_C(1) << (reg))
/* x1 .. x3, x12, x13, x16 .. x30 without x18, which is the platform's: the loop must not change it.
 */
#define KNOWN_REGS UINT64_C(0x7ffb300e)
/* The value of register n; the assembly below sets the low half to n. */
#define KNOWN(n) (UINT64_C(0x5ca10000) + (n))

#define SET(n) "mov x" #n ", #" #n "\n\tmovk x" #n ", #0x5ca1, lsl #16\n\t"

/* clang-format off */
#define SET_ALL \
	SET(1) SET(2) SET(3) SET(12) SET(13) SET(16) SET(17) SET(19) SET(20) SET(21) SET(22) \
	SET(23) SET(24) SET(25) SET(26) SET(27) SET(28) SET(29) SET(30)
/* clang-format on */

__attribute__((noinline)) void arch_run_known(struct arch_known *k)
{
	__asm__ volatile("mov x0, %[k]\n\t"
			 "sub sp, sp, #96\n\t"
			 "stp x19, x20, [sp]\n\tstp x21, x22, [sp, #16]\n\t"
			 "stp x23, x24, [sp, #32]\n\tstp x25, x26, [sp, #48]\n\t"
			 "stp x27, x28, [sp, #64]\n\tstp x29, x30, [sp, #80]\n\t"
			 "mov x9, sp\n\tstr x9, [x0, #8]\n\t"
			 "adr x9, 1f\n\tstr x9, [x0, #16]\n\t"
			 "adr x9, 2f\n\tstr x9, [x0, #24]\n\t"
			 "mov x10, x0\n\t" SET_ALL "3:\tsub sp, sp, #1024\n\t"
			 "mov x9, #200\n"
			 "4:\tsubs x9, x9, #1\n\t"
			 "b.ne 4b\n\t"
			 "add sp, sp, #1024\n"
			 "1:\tmov x8, %[call]\n\t"
			 "svc #0\n"
			 "2:\tldr x9, [x10]\n\t"
			 "subs x9, x9, #1\n\t"
			 "str x9, [x10]\n\t"
			 "b.ne 3b\n\t"
			 "ldp x19, x20, [sp]\n\tldp x21, x22, [sp, #16]\n\t"
			 "ldp x23, x24, [sp, #32]\n\tldp x25, x26, [sp, #48]\n\t"
			 "ldp x27, x28, [sp, #64]\n\tldp x29, x30, [sp, #80]\n\t"
			 "add sp, sp, #96\n\t"
			 :
			 : [k] "r"(k), [call] "i"(SYS_getppid)
			 : "x0", "x1", "x2", "x3", "x8", "x9", "x10", "x12", "x13", "x16", "x17",
			   "memory", "cc");
}

bool arch_judge(const struct arch_known *k, uint64_t mask, const uint64_t *regs, uint64_t *valid)
{
	uint64_t pc;

	if (!(mask & BIT(PERF_REG_ARM64_PC)))
		return false;
	/* In a system call it is the address that the call returns to. */
	pc = arch_register(mask, regs, PERF_REG_ARM64_PC);
	if (pc <= k->begin || pc > k->end)
		return false;
	if ((mask & BIT(PERF_REG_ARM64_SP)) &&
	    arch_register(mask, regs, PERF_REG_ARM64_SP) != k->sp)
		*valid &= ~BIT(PERF_REG_ARM64_SP);
	for (uint32_t reg = 0; reg < 32; reg++) {
		if ((KNOWN_REGS & mask & BIT(reg)) && arch_register(mask, regs, reg) != KNOWN(reg))
			*valid &= ~BIT(reg);
	}
	return true;
}

uint64_t arch_checkable(void)
{
	return sample_user_regs;
}

uint64_t arch_unproved(void)
{
	return sample_user_regs;
}
