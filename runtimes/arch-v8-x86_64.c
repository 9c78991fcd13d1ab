/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 on x86_64 (frame-constants-x64.h, code-generator-x64.cc): a frame is made by push rbp; mov
 * rbp, rsp and left by mov rsp, rbp; pop rbp, before the return, which may drop arguments.
 */
#include "runtimes/arch-v8.h"

const bool arch_has_v8 = true;
const int arch_v8_link = -1;
const uint64_t arch_v8_entry_bytes = 0;

enum { RCX = 2, RDI = 5, R8 = 8, R9 = 9, R12 = 12, R13 = 13 };
enum { MAX_EPILOGUE = 24 }; /* behind pop rbp */

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

/* The offset, in the last n bytes of code, after the instructions that leave the frame; n: none. */
static size_t find_leave(const uint8_t *before, size_t n)
{
	for (size_t i = n < MAX_EPILOGUE ? 0 : n - MAX_EPILOGUE; i + 4 <= n; i++) {
		const uint8_t *b = before + i;

		/* mov rsp, rbp, in both forms; pop rbp */
		if (b[0] == 0x48 && b[3] == 0x5d &&
		    ((b[1] == 0x8b && b[2] == 0xe5) || (b[1] == 0x89 && b[2] == 0xec)))
			return i + 4;
	}
	return n;
}

/*
 * The shape after pop rbp. To drop a variable number of arguments, code pops the return address
 * into a register, moves rsp by lea, and pushes the address again. Compiled code uses r10, built-in
 * functions r8, the interpreter rcx.
 */
static enum v8_shape shape_behind_leave(const uint8_t *since, size_t n, uint8_t *ret_register)
{
	bool popped = n >= 1 && since[0] == 0x59;

	*ret_register = RCX;
	if (popped && since[n - 1] == 0x51)
		popped = false;
	for (size_t i = 0; i + 2 <= n; i++) {
		if (since[i] == 0x41 && since[i + 1] >= 0x58 && since[i + 1] <= 0x5b) {
			popped = true;
			*ret_register = (uint8_t)(R8 + since[i + 1] - 0x58);
		} else if (since[i] == 0x41 && since[i + 1] >= 0x50 && since[i + 1] <= 0x53) {
			popped = false;
		}
	}
	return popped ? V8_SHAPE_POPPED : V8_SHAPE_NONE;
}

static bool returns_soon(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n && i < MAX_EPILOGUE; i++) {
		if (code[i] == 0xc3 || code[i] == 0xc2)
			return true;
	}
	return false;
}

enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n,
			    uint8_t *ret_register)
{
	size_t leave;

	if (n_before >= 1 && before[n_before - 1] == 0x55 && n >= 3 && code[0] == 0x48 &&
	    code[1] == 0x89 && code[2] == 0xe5)
		return V8_SHAPE_PUSHED;
	if (has_prologue(code, n))
		return V8_SHAPE_NONE;
	if (n >= 1 && (code[0] == 0xc3 || code[0] == 0xc2)) /* ret */
		return V8_SHAPE_NONE;
	leave = find_leave(before, n_before);
	if ((leave < n_before || (n_before >= 4 && before[n_before - 1] == 0x5d)) &&
	    returns_soon(code, n))
		return shape_behind_leave(before + leave, n_before - leave, ret_register);
	/* In front of the prologue stand checks: of the entry, and whether it still holds. */
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

/* The register points into it, so that more of it is within a byte's reach. */
uint64_t arch_v8_isolate(const struct runtime_regs *regs)
{
	return regs->r[R13] - 128;
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
