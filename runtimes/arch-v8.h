/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What V8's frames do differently on each processor. */
#include "runtimes/stack.h"

/* Whether its frames are known here. */
extern const bool arch_has_v8;

/* How the frame of some code of V8's stands at a place in it. */
enum v8_shape {
	V8_SHAPE_FULL,	 /* fp is its own */
	V8_SHAPE_PUSHED, /* the caller's fp is on top of the stack, the return address behind it */
	V8_SHAPE_NONE,	 /* the return address is on top of the stack */
	V8_SHAPE_POPPED, /* the return address is in a register */
};
/* before: n_before bytes in front of the place, from the entry on if they reach it; code: n bytes
 * from it on. *ret_register: of V8_SHAPE_POPPED, by DWARF number. */
enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n,
			    uint8_t *ret_register);
/* Of an interrupted handler of the interpreter: the bytecode array and the place in it; of an
 * entry: the function. */
uint64_t arch_v8_bytecode(const struct runtime_regs *regs);
uint64_t arch_v8_offset(const struct runtime_regs *regs);
uint64_t arch_v8_function(const struct runtime_regs *regs);
/* Whether what stands in front of a return address is a call. */
bool arch_v8_is_call(const uint8_t *before, size_t n);
