/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every stub loads its GOT slot into x17: adrp x16, page; ldr x17, [x16, offset]; add; br x17. With
 * BTI it begins with a landing pad, and with PAC it authenticates before it jumps; both pad it to
 * 24 bytes. The lazy stubs share the first 32 bytes (AAELF64, "Procedure linkage table").
 */
#include <elf.h>
#include <string.h>

#include "symbolize/arch.h"

#define BTI_C	    0xd503245f
#define NOP	    0xd503201f
#define AUTIA1716   0xd503219f
#define SAVE	    0xa9bf7bf0 /* stp x16, x30, [sp, #-16]! */
#define SHARED_SIZE 32
#define SHORT_SIZE  16
#define LONG_SIZE   24

static uint32_t word_at(const uint8_t *code, size_t n, size_t at)
{
	uint32_t word = 0;

	if (at + sizeof(word) <= n)
		memcpy(&word, code + at, sizeof(word));
	return word;
}

/* The page that adrp at this address loads. */
static uint64_t adrp_target(uint32_t word, uint64_t address)
{
	uint64_t pages = (uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);

	if (pages & 1 << 20)
		pages -= UINT64_C(1) << 21;
	return (address & ~UINT64_C(0xfff)) + (pages << 12);
}

static void read_stub(const uint8_t *code, size_t n, uint64_t vaddr, struct arch_stub *ret)
{
	size_t at = word_at(code, n, 0) == BTI_C ? 4 : 0;
	uint32_t adrp = word_at(code, n, at), ldr = word_at(code, n, at + 4), next;

	*ret = (struct arch_stub){.size = SHORT_SIZE};
	if (word_at(code, n, at) == SAVE) {
		ret->size = SHARED_SIZE;
		return;
	}
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return;
	next = word_at(code, n, SHORT_SIZE);
	if (at || next == NOP || word_at(code, n, 12) == AUTIA1716)
		ret->size = LONG_SIZE;
	ret->kind = ARCH_STUB_SLOT;
	ret->target = adrp_target(adrp, vaddr + at) + (uint64_t)(ldr >> 10 & 0xfff) * 8;
}

/* adrp REGISTER, page; ldr of 64 bits, [the same, offset] */
static uint64_t read_load(const uint8_t *code, size_t n, uint64_t vaddr)
{
	uint32_t adrp = word_at(code, n, 0), ldr = word_at(code, n, 4);

	if (vaddr % 4 || (adrp & 0x9f000000) != 0x90000000 || (ldr & 0xffc00000) != 0xf9400000 ||
	    (adrp & 0x1f) != (ldr >> 5 & 0x1f))
		return 0;
	return adrp_target(adrp, vaddr) + (uint64_t)(ldr >> 10 & 0xfff) * 8;
}

const struct arch arch_aarch64 = {
	.machine = EM_AARCH64,
	.name = "aarch64",
	.r_jump_slot = R_AARCH64_JUMP_SLOT,
	.r_glob_dat = R_AARCH64_GLOB_DAT,
	.r_irelative = R_AARCH64_IRELATIVE,
	.r_relative = R_AARCH64_RELATIVE,
	.stub = read_stub,
	.load = read_load,
};
