/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Steps through frames of code that a runtime made: what all such runtimes are asked and answer. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/strtab.h"

/* Texts: of the runtime that was asked. They are a stranger's words. */
struct stepped_frame {
	strid function; /* "java.util.HashMap.put" */
	strid file;	/* "HashMap.java"; empty: not known */
	uint32_t line, start_line;
	uint8_t level; /* how it was executing: the runtime's */
	bool inlined;  /* into the next one */
};

/* The copy of a stack: n bytes that were at start. */
struct runtime_stack {
	const uint8_t *bytes;
	uint64_t start, n;
	uint64_t *missing; /* set to the address of what was read last in vain; NULL: nobody asks */
};

/* false: the copy does not have that word. */
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

/* Registers by DWARF number; in a frame that has called another only pc, sp and fp count. */
enum { RUNTIME_N_REGS = 33 };
struct runtime_regs {
	uint64_t r[RUNTIME_N_REGS];
	uint64_t pc, sp, fp;
	bool innermost; /* interrupted: r holds */
	/* Of its callee: it is a frame that goes by the runtime's own calling convention. */
	bool called_own;
	/* Where the file is mapped that pc is in: code there is as the file has it. 0: in none, or
	 * it is not known. */
	uint64_t file_start, file_end;
};
/* Of a thread that ptrace has stopped: what PTRACE_GETREGSET says for NT_PRSTATUS, n bytes. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret);

enum runtime_step {
	RUNTIME_STEP,	   /* regs are the caller's, frames has what was executing there */
	RUNTIME_TRUNCATED, /* the stack copy ends */
	RUNTIME_UNPROVEN,  /* what is there now does not explain the stack */
	/* The callers are in the heap: of a virtual thread that was put off and goes on */
	RUNTIME_ELSEWHERE,
	RUNTIME_SPENT,	  /* the budget of this walk */
	RUNTIME_NOT_MINE, /* nothing there is the runtime's */
	RUNTIME_N_STEPS
};
