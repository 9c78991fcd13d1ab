/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the walk needs to know about the processor. One arch-*.c is compiled in. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind.h"

#ifdef UNWIND_AARCH64

#define ARCH_ELF_MACHINE 183 /* EM_AARCH64 */
#define ARCH_REG_FP	 29
#define ARCH_REG_LR	 30
#define ARCH_REG_SP	 UNWIND_REG_SP
#define ARCH_REG_PC	 UNWIND_REG_PC
/* The column of the return address in CFI, which has no column for the pc. */
#define ARCH_REG_RA	 30
#define ARCH_N_CFI_REGS	 32
#define ARCH_REG_RESULT	 0 /* of a system call */
#define ARCH_SYSTEM_CALL "\x01\x00\x00\xd4"
/* A call puts the return address into the link register; a function that calls another saves it. */
#define ARCH_HAS_LR true
/* A return address may be signed (PAC). The signature is above the 48 bits of a user address
 * (programs get 52 only if they ask). */
#define ARCH_CODE_MASK UINT64_C(0x0000ffffffffffff)
/* libdw's list of call-saved registers is right here, so this one is in it already. */
#define ARCH_REG_UNLISTED 29
#define ARCH_MAX_PAGE	  65536
/* Bytes of the shortest instruction, the unit of pcs in Go's tables. */
#define ARCH_GO_QUANTUM 4
#define ARCH_R_RELATIVE 1027 /* R_AARCH64_RELATIVE */
#define ARCH_GO_HAS_FP	true
#define ARCH_FP_TO_PAIR 0

#elif defined(UNWIND_RISCV64)

#define ARCH_ELF_MACHINE  243 /* EM_RISCV */
#define ARCH_REG_FP	  8
#define ARCH_REG_LR	  1
#define ARCH_REG_SP	  UNWIND_REG_SP
#define ARCH_REG_PC	  UNWIND_REG_PC
#define ARCH_REG_RA	  1
#define ARCH_N_CFI_REGS	  32
#define ARCH_REG_RESULT	  10
#define ARCH_SYSTEM_CALL  "\x73\x00\x00\x00"
#define ARCH_HAS_LR	  true
#define ARCH_CODE_MASK	  UINT64_MAX
#define ARCH_REG_UNLISTED 8
#define ARCH_MAX_PAGE	  4096
#define ARCH_GO_QUANTUM	  4
#define ARCH_R_RELATIVE	  3 /* R_RISCV_RELATIVE */
#define ARCH_GO_HAS_FP	  false
/* The frame pointer is the CFA. */
#define ARCH_FP_TO_PAIR	  (-16)

#else /* x86_64 */

#define ARCH_ELF_MACHINE  62 /* EM_X86_64 */
#define ARCH_REG_SP	  UNWIND_REG_SP
#define ARCH_REG_FP	  6
#define ARCH_REG_PC	  UNWIND_REG_PC
#define ARCH_REG_RA	  16
#define ARCH_N_CFI_REGS	  17
#define ARCH_REG_RESULT	  0
#define ARCH_SYSTEM_CALL  "\x0f\x05"
/* The call instruction pushes the return address just below the CFA. */
#define ARCH_HAS_LR	  false
#define ARCH_REG_LR	  0 /* none */
#define ARCH_CODE_MASK	  UINT64_MAX
/* rbx is call-saved, but libdw takes it for call-clobbered (up to 0.196 at least). */
#define ARCH_REG_UNLISTED 3
#define ARCH_MAX_PAGE	  4096
#define ARCH_GO_QUANTUM	  1
#define ARCH_R_RELATIVE	  8 /* R_X86_64_RELATIVE */
/* Do functions of Go save the frame pointer? */
#define ARCH_GO_HAS_FP	  true
/* From where the frame pointer points to { caller's fp, return address }. */
#define ARCH_FP_TO_PAIR	  0

#endif

/* On entry to a function the return address is at CFA - 8, or in lr. */
#define ARCH_RA_WORDS (ARCH_HAS_LR ? RULE_RA_IN_LR : -1)

struct rule;
struct full_rule;

enum stub_kind { STUB_PLT, STUB_INIT };

/* The rule at byte `at` of a stub section, which linkers make without CFI; code: the bytes of the
 * section. false: not known. */
bool arch_stub_rule(enum stub_kind kind, const uint8_t *code, size_t n, size_t at,
		    struct rule *ret);

/*
 * The trampoline that signal handlers return to, where the kernel's has no CFI (aarch64 since 5.8):
 * its instructions, NULL where it has CFI; and the rule that leads to the interrupted frame.
 */
extern const uint8_t *const arch_sigreturn_code;
extern const size_t arch_sigreturn_bytes;
void arch_sigreturn_rule(struct full_rule *ret);

/*
 * True: sp points at the signal frame that the kernel pushes before it runs a handler, after its
 * return address (x86_64: where sp is once the handler has returned); *ret: the interrupted
 * registers. For trampolines without CFI (musl's): the words that the kernel wrote prove it.
 */
struct stack_copy;
bool arch_signal_frame(const struct stack_copy *stack, uint64_t sp, struct unwind_regs *ret);

/* The first bytes of a program's entry function. It never returns and has no caller. */
#define ARCH_ENTRY_BYTES 96

/*
 * The sizes that a function's first instructions may take from the stack at once: what only looks
 * like such an instruction is among them. How many; more than max: *ret lacks some.
 */
size_t arch_frame_sizes(const uint8_t *code, size_t n, uint32_t *ret, size_t max);

/* Do the ARCH_CALL_BYTES before a return address end with a call? *ret_target of a direct one. */
#define ARCH_CALL_BYTES 7
enum arch_call { ARCH_NO_CALL, ARCH_CALL_DIRECT, ARCH_CALL_INDIRECT };
enum arch_call arch_call_before(const uint8_t *code, uint64_t address, uint64_t *ret_target);

/* CFI instructions of this processor that change nothing a walk reads; they have no operands. */
bool arch_cfa_op_is_nop(uint8_t op);
