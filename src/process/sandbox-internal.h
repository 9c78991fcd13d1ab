/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of system calls, and the filter that is made of it: inside of the sandbox. */
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/sandbox.h"

#define SANDBOX_MAX_CHECKS 2

struct sandbox_call {
	int number;
	uint32_t roles; /* 1 << enum peer */
	int error;	/* 0: allowed; else what it fails with, in every mode: its caller copes */
	struct sandbox_check {
		uint32_t argument;    /* 0 .. 5 */
		uint64_t mask;	      /* 0: no check */
		uint64_t value;	      /* of the argument & mask */
	} checks[SANDBOX_MAX_CHECKS]; /* the row is about calls that pass all of them */
};

/* All rows. Of several rows for one call the first that fits counts; without one it is refused. */
const struct sandbox_call *sandbox_calls(size_t *ret_n);
/*
 * The filter of a role: the kernel runs it at each system call. refusal is its answer
 * (SECCOMP_RET_*) to what no row allows. The number of instructions; -E2BIG when max are too few.
 */
int sandbox_program(const struct sandbox_call *calls, size_t n_calls, enum peer who,
		    uint32_t refusal, struct sock_filter *ret, size_t max);

/* Whether the role has to make files by name where it would otherwise make them in memory. */
bool sandbox_makes_files(enum peer who);
/* SIGSYS, which the mode "trap" makes of a refused call, names it and ends the process. */
void sandbox_trap_calls(void);

/* Calls with greater numbers are younger than the table: libraries have other ways without them. */
#define SANDBOX_NEWEST_CALL 470

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
/* Numbers from here on are calls of the x32 ABI, which the table does not know. */
#define SANDBOX_FIRST_FOREIGN 0x40000000u
#elif defined(__aarch64__)
#define SANDBOX_ARCH	      AUDIT_ARCH_AARCH64
#define SANDBOX_FIRST_FOREIGN 0x80000000u
#else
#error "the sandbox has no table of system calls for this architecture"
#endif
