/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What differs between processors in frames of V8. One arch-*.c is compiled in. */
#include "runtimes/stack.h"

/* Can we walk its frames on this processor? */
extern const bool arch_has_v8;

/* The register with the return address of code that has no frame of its own, by DWARF number;
 * negative: the address is on top of the stack. */
extern const int arch_v8_link;
/* Registers that a frame which native code entered saves in front of its caller's fp and the return
 * address, in bytes. */
extern const uint64_t arch_v8_entry_bytes;

/* The shape of a frame of V8's code at some pc. */
enum v8_shape {
	V8_SHAPE_FULL,	 /* fp is its own */
	V8_SHAPE_PUSHED, /* the caller's fp is on top of the stack, and the return address above */
	V8_SHAPE_NONE,	 /* the return address is on top of the stack */
	V8_SHAPE_POPPED, /* the return address is in a register */
};
/* before: the n_before bytes before pc, at most from the entry on; code: the n bytes from pc on.
 * *ret_register: for V8_SHAPE_POPPED, by DWARF number. */
enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n,
			    uint8_t *ret_register);
/* In an interrupted handler of the interpreter: the bytecode array, and the offset in it. In an
 * entry: the function. */
uint64_t arch_v8_bytecode(const struct runtime_regs *regs);
uint64_t arch_v8_offset(const struct runtime_regs *regs);
uint64_t arch_v8_function(const struct runtime_regs *regs);
/* In all of V8's code: the address of the isolate, unproven. */
uint64_t arch_v8_isolate(const struct runtime_regs *regs);
/* Is the instruction before a return address a call? */
bool arch_v8_is_call(const uint8_t *before, size_t n);
