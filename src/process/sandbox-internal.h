/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to the sandbox: the table of system calls, and the filter made from it. */
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/sandbox.h"

#define SANDBOX_MAX_CHECKS 2

struct sandbox_call {
	int number;
	uint32_t roles; /* 1 << enum peer */
	/* 0: allowed; else it fails with this in every mode, which its caller handles */
	int error;
	struct sandbox_check {
		uint32_t argument;    /* 0 .. 5 */
		uint64_t mask;	      /* 0: no check */
		uint64_t value;	      /* of the argument & mask */
	} checks[SANDBOX_MAX_CHECKS]; /* the row matches calls that pass all checks */
};

/* All rows. The first row that matches a call counts; without one the call is refused. */
const struct sandbox_call *sandbox_calls(size_t *ret_n);
/*
 * Makes the filter of a role, which the kernel runs at each system call. refusal: its result
 * (SECCOMP_RET_*) for calls that no row allows. Returns the number of instructions; -E2BIG: more
 * than max.
 */
int sandbox_program(const struct sandbox_call *calls, size_t n_calls, enum peer who,
		    uint32_t refusal, struct sock_filter *ret, size_t max);

/* Handles the SIGSYS that a refused call raises in the mode "trap": names the call and exits. */
void sandbox_trap_calls(void);

/* Calls with greater numbers are newer than the table: libraries work without them. */
#define SANDBOX_NEWEST_CALL 470

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
/* Numbers from here on are calls of the x32 ABI, which the table does not have. */
#define SANDBOX_FIRST_FOREIGN 0x40000000u
#elif defined(__aarch64__)
#define SANDBOX_ARCH	      AUDIT_ARCH_AARCH64
#define SANDBOX_FIRST_FOREIGN 0x80000000u
#elif defined(__riscv)
#define SANDBOX_ARCH	      AUDIT_ARCH_RISCV64
#define SANDBOX_FIRST_FOREIGN 0x80000000u
#else
#error "the sandbox has no table of system calls for this architecture"
#endif
