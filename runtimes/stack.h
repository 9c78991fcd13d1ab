/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The types for steps through frames of code that a runtime made; all such runtimes share them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/strtab.h"

/* Texts are ids of the runtime that was asked, and untrusted. */
struct stepped_frame {
	strid function; /* "java.util.HashMap.put" */
	strid file;	/* "HashMap.java"; empty: unknown */
	uint32_t line, start_line;
	uint8_t level; /* how it was executing: enum hotspot_level or v8_level */
	bool inlined;  /* into the next one */
};

/* The copy of a stack: the n bytes that were at address start. */
struct runtime_stack {
	const uint8_t *bytes;
	uint64_t start, n;
	uint64_t *missing; /* set to the address of the last failed read; NULL: not wanted */
};

/* Reads the word at an address; false: the copy lacks it. */
static inline bool runtime_stack_u64(const struct runtime_stack *s, uint64_t address, uint64_t *ret)
{
	uint64_t at = address - s->start;

	if (at >= s->n || s->n - at < sizeof(*ret)) {
		if (s->missing)
			*s->missing = address;
		return false;
	}
	memcpy(ret, s->bytes + at, sizeof(*ret));
	return true;
}

/* r: registers by DWARF number, valid only in the innermost frame; pc, sp and fp always are. */
enum { RUNTIME_N_REGS = 33 };
struct runtime_regs {
	uint64_t r[RUNTIME_N_REGS];
	uint64_t pc, sp, fp;
	bool innermost; /* interrupted, not calling: r is valid */
	/* Its callee is a frame with the runtime's own calling convention. */
	bool called_own;
	/* Where the file that pc lies in is mapped: that code does not change. 0: in no file, or
	 * unknown. */
	uint64_t file_start, file_end;
};
/* Converts the n bytes that PTRACE_GETREGSET gives for NT_PRSTATUS. false: they are of another
 * size. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret);

enum runtime_step {
	RUNTIME_STEP,	   /* regs are the caller's now; frames has the functions of the frame */
	RUNTIME_TRUNCATED, /* the stack copy ends */
	RUNTIME_UNPROVEN,  /* the memory, as it is now, does not explain the stack */
	/* The callers are in the heap: a virtual thread that was unmounted has continued */
	RUNTIME_ELSEWHERE,
	RUNTIME_SPENT,	  /* this walk's budget is used up */
	RUNTIME_NOT_MINE, /* not a frame of this runtime */
	RUNTIME_N_STEPS
};
