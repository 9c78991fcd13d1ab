/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this room needs to know about the processor. One arch-*.c is compiled in. Register numbers
 * are perf's (asm/perf_regs.h), bits as in sample_regs_user.
 */
#include <stdbool.h>
#include <stdint.h>

/* State of the loop below; its assembly uses the offsets. */
struct arch_known {
	uint64_t n_calls;
	uint64_t sp, begin, end; /* the stack pointer during the calls; the range of their code */
};

/* Makes n_calls short system calls with known values in the registers. Before each, it spends about
 * as long as a call with another stack pointer. */
void arch_run_known(struct arch_known *k);

/* The registers that the loop gives a known value, or that every kernel saves (bits). */
uint64_t arch_checkable(void);
/* Of these, the ones to trust if there were too few samples to decide. */
uint64_t arch_unproved(void);

/* Clears in *valid the registers that a sample inside the kernel shows wrong; regs: the registers
 * in mask. false: the sample was not taken inside the loop's calls. */
bool arch_judge(const struct arch_known *k, uint64_t mask, const uint64_t *regs, uint64_t *valid);

/* Stack pointer and program counter. */
extern const uint32_t arch_sp, arch_ip;
/* How many sample_place_regs has, and which of them are these two and a function's first argument,
 * if it is sampled. */
#ifdef __riscv
enum { ARCH_N_SPOT = 4, ARCH_SPOT_ARGUMENT = 0, ARCH_SPOT_SP = 2, ARCH_SPOT_IP = 0 };
#elif defined(__aarch64__)
enum { ARCH_N_SPOT = 5, ARCH_SPOT_ARGUMENT = 0, ARCH_SPOT_SP = 3, ARCH_SPOT_IP = 4 };
#else
enum { ARCH_N_SPOT = 4, ARCH_SPOT_ARGUMENT = 0, ARCH_SPOT_SP = 2, ARCH_SPOT_IP = 3 };
#endif
extern const bool arch_has_arguments;
/* The register of a system call's second argument; UINT32_MAX: it is not sampled. */
extern const uint32_t arch_second_argument;
/* The registers of a C function's arguments, and of a Go function's; UINT32_MAX: not sampled. */
extern const uint32_t arch_arguments[4];
extern const uint32_t arch_go_arguments[4];

/* The value of a register that is in mask. */
static inline uint64_t arch_register(uint64_t mask, const uint64_t *regs, uint32_t reg)
{
	return regs[__builtin_popcountll(mask & ((UINT64_C(1) << reg) - 1))];
}
