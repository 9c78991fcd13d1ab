/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this room must know about the processor; one arch-*.c is compiled in. Registers are perf's
 * (asm/perf_regs.h), bits as in sample_regs_user.
 */
#include <stdbool.h>
#include <stdint.h>

/* What the loop below stood at; offsets are used in its assembly. */
struct arch_known {
	uint64_t n_calls;
	uint64_t sp, begin, end; /* of the calls: the stack pointer, and the code */
};

/* Makes n_calls short system calls with known values in the registers; before each it spends some
 * time with another stack pointer, about as long as a call. */
void arch_run_known(struct arch_known *k);

/* Registers that the loop tells the value of, or that every kernel saves. */
uint64_t arch_checkable(void);
/* Of these, those trusted where too few samples came to tell. */
uint64_t arch_unproved(void);

/* Clears in *valid what a sample inside the kernel shows wrongly; regs: the registers of mask.
 * false: it was not taken inside the loop's calls. */
bool arch_judge(const struct arch_known *k, uint64_t mask, const uint64_t *regs, uint64_t *valid);

/* Stack pointer and program counter. */
extern const uint32_t arch_sp, arch_ip;
/* Of a system call; UINT32_MAX: not among the user's registers that are sampled. */
extern const uint32_t arch_second_argument;

/* The value of a register that is in mask. */
static inline uint64_t arch_register(uint64_t mask, const uint64_t *regs, uint32_t reg)
{
	return regs[__builtin_popcountll(mask & ((UINT64_C(1) << reg) - 1))];
}
