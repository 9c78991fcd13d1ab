/* SPDX-License-Identifier: Apache-2.0 */
/*
 * riscv64's handle_exception saves every register, so all of them should be right inside the
 * kernel, too, except a0, the result of the system call.
 */
#include <asm/perf_regs.h>
#include <sys/syscall.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"

/* All but gp, tp and the arguments: the walk needs ra, sp and the call-saved ones, stubs the t
 * registers. */
const uint64_t sample_user_regs = UINT64_C(0xfffc03e7);
const uint64_t sample_place_regs =
	UINT64_C(1) << PERF_REG_RISCV_SP | UINT64_C(1) << PERF_REG_RISCV_PC |
	UINT64_C(1) << PERF_REG_RISCV_S0 | UINT64_C(1) << PERF_REG_RISCV_RA;
const uint32_t arch_second_argument = UINT32_MAX;
const uint32_t arch_arguments[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
const uint32_t arch_go_arguments[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
const bool arch_has_arguments = false;
const uint32_t arch_sp = PERF_REG_RISCV_SP, arch_ip = PERF_REG_RISCV_PC;
const char sample_arch_name[] = "riscv64";

#define BIT(reg) (UINT64_C(1) << (reg))
/* The value of register n. */
#define KNOWN(n) (UINT64_C(0x5ca10000) + (n))
/* ra, s0, s1, s2 .. s11 */
#define KNOWN_REGS UINT64_C(0xffc0302)

#define SET(n) "li x" #n ", 0x5ca10000 + " #n "\n\t"

/* clang-format off */
#define SET_ALL \
	SET(1) SET(8) SET(9) SET(18) SET(19) SET(20) SET(21) \
	SET(22) SET(23) SET(24) SET(25) SET(26) SET(27)
#define EACH(op) \
	op " x1, 0(sp)\n\t" op " x8, 8(sp)\n\t" op " x9, 16(sp)\n\t" op " x18, 24(sp)\n\t" \
	op " x19, 32(sp)\n\t" op " x20, 40(sp)\n\t" op " x21, 48(sp)\n\t" op " x22, 56(sp)\n\t" \
	op " x23, 64(sp)\n\t" op " x24, 72(sp)\n\t" op " x25, 80(sp)\n\t" op " x26, 88(sp)\n\t" \
	op " x27, 96(sp)\n\t"
/* clang-format on */

__attribute__((noinline)) void arch_run_known(struct arch_known *k)
{
	__asm__ volatile("mv t2, %[k]\n\t"
			 "addi sp, sp, -112\n\t" EACH(
				 "sd") "sd sp, 8(t2)\n\t"
				       "lla t3, 1f\n\tsd t3, 16(t2)\n\t"
				       "lla t3, 2f\n\tsd t3, 24(t2)\n\t" SET_ALL
				       "3:\taddi sp, sp, -1024\n\t"
				       "li t3, 200\n"
				       "4:\taddi t3, t3, -1\n\t"
				       "bnez t3, 4b\n\t"
				       "addi sp, sp, 1024\n"
				       "1:\tli a7, %[call]\n\t"
				       "ecall\n"
				       "2:\tld t3, 0(t2)\n\t"
				       "addi t3, t3, -1\n\t"
				       "sd t3, 0(t2)\n\t"
				       "bnez t3, 3b\n\t" EACH("ld") "addi sp, sp, 112\n\t"
			 :
			 : [k] "r"(k), [call] "i"(SYS_getppid)
			 : "a0", "a7", "t2", "t3", "memory");
}

bool arch_judge(const struct arch_known *k, uint64_t mask, const uint64_t *regs, uint64_t *valid)
{
	uint64_t pc;

	if (!(mask & BIT(PERF_REG_RISCV_PC)))
		return false;
	/* In a system call it is the address that the call returns to. */
	pc = arch_register(mask, regs, PERF_REG_RISCV_PC);
	if (pc <= k->begin || pc > k->end)
		return false;
	if ((mask & BIT(PERF_REG_RISCV_SP)) &&
	    arch_register(mask, regs, PERF_REG_RISCV_SP) != k->sp)
		*valid &= ~BIT(PERF_REG_RISCV_SP);
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
