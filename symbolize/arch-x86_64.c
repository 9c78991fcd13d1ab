/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linkers have half a dozen layouts for stubs (lazy, bound at start, with landing pads for indirect
 * branch tracking, in two sections). But every stub either jumps through a GOT slot (ff 25 rel32)
 * or, in the lazy half of a split table, pushes the number of its relocation (68 imm32). So we read
 * the instructions instead of guessing the layout.
 */
#include <elf.h>
#include <string.h>

#include "symbolize/arch.h"

/* Stubs have 16 bytes, but some in .plt.got have 8: a jump and two bytes of padding. */
static size_t stub_size(const uint8_t *code, size_t n)
{
	bool jump = n >= 8 && code[0] == 0xff && code[1] == 0x25;

	return jump && (code[6] == 0x66 || code[6] == 0xcc || code[6] == 0x90) ? 8 : 16;
}

static void read_stub(const uint8_t *code, size_t n, uint64_t vaddr, struct arch_stub *ret)
{
	uint32_t relocation;
	int32_t rel;
	size_t at = 0;

	*ret = (struct arch_stub){.size = stub_size(code, n)};
	if (n > ret->size)
		n = ret->size;
	if (n >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
		at = 4;
	if (at < n && code[at] == 0xf2) /* bnd */
		at++;
	if (at + 6 <= n && code[at] == 0xff && code[at + 1] == 0x25) {
		memcpy(&rel, code + at + 2, sizeof(rel));
		ret->kind = ARCH_STUB_SLOT;
		ret->target = vaddr + at + 6 + (uint64_t)(int64_t)rel;
	} else if (at + 5 <= n && code[at] == 0x68) {
		memcpy(&relocation, code + at + 1, sizeof(relocation));
		ret->kind = ARCH_STUB_RELOCATION;
		ret->target = relocation;
	}
}

/* mov DISTANCE(%rip), REGISTER of 64 bits; from where the next instruction begins. */
static uint64_t read_load(const uint8_t *code, size_t n, uint64_t vaddr)
{
	enum { LOAD_BYTES = 7 };
	int32_t distance;

	if (n < LOAD_BYTES || (code[0] & 0xfb) != 0x48 || code[1] != 0x8b ||
	    (code[2] & 0xc7) != 0x05)
		return 0;
	memcpy(&distance, code + 3, sizeof(distance));
	return vaddr + LOAD_BYTES + (uint64_t)(int64_t)distance;
}

const struct arch arch_x86_64 = {
	.machine = EM_X86_64,
	.name = "x86_64",
	.r_jump_slot = R_X86_64_JUMP_SLOT,
	.r_glob_dat = R_X86_64_GLOB_DAT,
	.r_irelative = R_X86_64_IRELATIVE,
	.r_relative = R_X86_64_RELATIVE,
	.stub = read_stub,
	.load = read_load,
};
