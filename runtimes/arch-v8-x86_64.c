/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 on x86_64 (frame-constants-x64.h, code-generator-x64.cc): a frame is made by push rbp; mov
 * rbp, rsp and left by mov rsp, rbp; pop rbp, before the return, which may drop arguments.
 */
#include "runtimes/arch-v8.h"

const bool arch_has_v8 = true;

enum { RDI = 5, R9 = 9, R12 = 12 };

static bool has_prologue(const uint8_t *code, size_t n)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};

	return n >= sizeof(prologue) && memcmp(code, prologue, sizeof(prologue)) == 0;
}

/* Whether the frame is made only behind code. */
static bool is_before(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (has_prologue(code + i, n - i))
			return true;
	}
	return false;
}

enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n)
{
	if (n_before >= 1 && before[n_before - 1] == 0x55 && n >= 3 && code[0] == 0x48 &&
	    code[1] == 0x89 && code[2] == 0xe5)
		return V8_SHAPE_PUSHED;
	if (has_prologue(code, n))
		return V8_SHAPE_NONE;
	if (n >= 1 && (code[0] == 0xc3 || code[0] == 0xc2)) /* ret */
		return V8_SHAPE_NONE;
	if (n_before >= 1 && before[n_before - 1] == 0x5d) /* behind pop rbp */
		return V8_SHAPE_NONE;
	/* Checks stand in front of the prologue: of the entry's address, and whether it was
	 * deoptimized. */
	return n_before < 48 && !is_before(before, n_before) && is_before(code, n) ? V8_SHAPE_NONE
										   : V8_SHAPE_FULL;
}

uint64_t arch_v8_bytecode(const struct runtime_regs *regs)
{
	return regs->r[R12];
}

uint64_t arch_v8_offset(const struct runtime_regs *regs)
{
	return regs->r[R9];
}

uint64_t arch_v8_function(const struct runtime_regs *regs)
{
	return regs->r[RDI];
}

/* call rel32; call with a register or memory operand of 2 to 7 bytes. */
bool arch_v8_is_call(const uint8_t *before, size_t n)
{
	if (n >= 5 && before[n - 5] == 0xe8)
		return true;
	for (size_t k = 2; k <= 7 && k <= n; k++) {
		if (before[n - k] == 0xff && (before[n - k + 1] >> 3 & 7) == 2)
			return true;
	}
	return false;
}
