/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the walk must know about the processor; one arch-*.c is compiled in. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */
#define ARCH_REG_SP	 7
#define ARCH_REG_FP	 6
#define ARCH_REG_PC	 16
/* A call-saved register (rbx) that libdw believes to be call-clobbered (up to 0.196 at least). */
#define ARCH_REG_UNLISTED 3
/* The call instruction pushes the return address just below the CFA. */
#define ARCH_RA_OFFSET (-8)

enum stub_kind { STUB_PLT, STUB_INIT };

/*
 * Code that linkers make without CFI: how far the CFA is above sp at byte `at` of a stub section
 * (its code bytes are given). 0: not known.
 */
int32_t arch_stub_cfa_offset(enum stub_kind kind, const uint8_t *code, size_t n, size_t at);

/* The first bytes of a program's entry function that never returns and has no caller. */
#define ARCH_ENTRY_BYTES 96
