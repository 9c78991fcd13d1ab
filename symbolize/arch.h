/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the tables of an ELF file need to know about its processor. Any host reads the files of all
 * these processors; each has an arch-*.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stub of the procedure linkage table. */
struct arch_stub {
	size_t size; /* where the next one begins; never 0 */
	enum {
		ARCH_STUB_OTHER,      /* the part that lazy stubs share, or unknown */
		ARCH_STUB_SLOT,	      /* jumps through the GOT slot at address target */
		ARCH_STUB_RELOCATION, /* pushes target, the number of its relocation */
	} kind;
	uint64_t target;
};

struct arch {
	uint16_t machine; /* ELF64's e_machine */
	const char *name; /* as uname says */
	/* Relocation types of GOT slots, and of words that hold an address in the file itself. */
	uint32_t r_jump_slot, r_glob_dat, r_irelative, r_relative;
	/* Reads the stub that begins at code[0] and is linked at vaddr; n > 0 bytes of its section
	 * are left. */
	void (*stub)(const uint8_t *code, size_t n, uint64_t vaddr, struct arch_stub *ret);
	/* The address of the 8 bytes that the instructions at code[0], linked at vaddr, load from a
	 * place that they know; n bytes of code are left. 0: they load none. NULL: not known. */
	uint64_t (*load)(const uint8_t *code, size_t n, uint64_t vaddr);
};

extern const struct arch arch_x86_64, arch_aarch64, arch_riscv64;

/* The architecture with that e_machine; NULL: unknown. */
const struct arch *arch_find(uint16_t machine);
/* The architecture of this host. */
const struct arch *arch_here(void);
