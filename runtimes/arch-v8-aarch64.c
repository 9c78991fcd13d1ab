/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 on aarch64 (frame-constants-arm64.h, macro-assembler-arm64.cc). A frame is made by a store of
 * fp and lr, which may be one of several, and then add fp, sp, number. It is left by mov sp, fp;
 * ldp fp, lr, [sp], 16. Before and after that the return address is in lr, and fp is the caller's.
 */
#include "runtimes/arch-aarch64.h"
#include "runtimes/arch-v8.h"

const bool arch_has_v8 = true;
const int arch_v8_link = 30;
/* x19 to x28, d8 to d15 */
const uint64_t arch_v8_entry_bytes = 18 * 8;

enum { X1 = 1, X19 = 19, X20 = 20, X26 = 26 };
/* In instructions. */
enum { MAX_PROLOGUE = 4, MAX_EPILOGUE = 8, MAX_ENTRY = 12 };

/* add fp, sp, number */
static bool sets_fp(uint32_t word)
{
	return (word & 0xffc003ff) == 0x910003fd;
}

/* ldp fp, lr, [sp], number */
static bool restores_fp(uint32_t word)
{
	return (word & 0xffc07fff) == 0xa8c07bfd;
}

/* b, br, ret */
static bool goes_away(uint32_t word)
{
	return (word & 0xfc000000) == 0x14000000 || (word & 0xff9ffc1f) == 0xd61f0000;
}

/* bl, blr; b.cond, cbz, tbz: another way leads behind these, but that the frame is the same there
 * need not be so. */
static bool branches(uint32_t word)
{
	return goes_away(word) || (word & 0xfc000000) == 0x94000000 ||
	       (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xff000010) == 0x54000000 ||
	       (word & 0x7c000000) == 0x34000000;
}

static bool has_any(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sets_fp(word_at(code, i)))
			return true;
	}
	return false;
}

/* The frame is made at once. */
static bool is_prologue(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n && i < MAX_PROLOGUE; i++) {
		uint32_t word = word_at(code, i);

		if (sets_fp(word))
			return true;
		if (branches(word) || restores_fp(word))
			return false;
	}
	return false;
}

/* The frame was left, and the code has not gone elsewhere since. */
static bool is_epilogue(const uint8_t *before, size_t n)
{
	for (size_t i = 1; i <= n && i <= MAX_EPILOGUE; i++) {
		uint32_t word = word_at(before, n - i);

		if (restores_fp(word))
			return true;
		if (goes_away(word) || sets_fp(word))
			return false;
	}
	return false;
}

enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n,
			    uint8_t *ret_register)
{
	size_t n_words = n / WORD, n_words_before = n_before / WORD;

	*ret_register = (uint8_t)arch_v8_link;
	if (n_before % WORD != 0 || n_words == 0)
		return V8_SHAPE_FULL;
	if ((word_at(code, 0) & 0xfffffc1f) == 0xd65f0000 || is_prologue(code, n_words) ||
	    is_epilogue(before, n_words_before))
		return V8_SHAPE_POPPED;
	/* In front of the prologue stand checks: of the entry, and whether it still holds. */
	return n_words_before < MAX_ENTRY && !has_any(before, n_words_before) &&
			       has_any(code, n_words)
		       ? V8_SHAPE_POPPED
		       : V8_SHAPE_FULL;
}

uint64_t arch_v8_bytecode(const struct runtime_regs *regs)
{
	return regs->r[X20];
}

uint64_t arch_v8_offset(const struct runtime_regs *regs)
{
	return regs->r[X19];
}

uint64_t arch_v8_function(const struct runtime_regs *regs)
{
	return regs->r[X1];
}

/* The register points into it, so that more of it is within reach. */
uint64_t arch_v8_isolate(const struct runtime_regs *regs)
{
	return regs->r[X26] - 256;
}

/* bl; blr */
bool arch_v8_is_call(const uint8_t *before, size_t n)
{
	uint32_t word;

	if (n < WORD)
		return false;
	memcpy(&word, before + n - WORD, sizeof(word));
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
}
