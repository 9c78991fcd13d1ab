/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every stub loads its GOT slot into t3: auipc t3, page; ld t3, offset(t3); jalr t1, t3; nop. The
 * lazy stubs share the first 32 bytes (RISC-V ELF psABI, "Procedure Linkage Table").
 */
#include <elf.h>
#include <string.h>

#include "symbolize/arch.h"

#define SHARED_SIZE 32
#define STUB_SIZE   16

static uint32_t word_at(const uint8_t *code, size_t n, size_t at)
{
	uint32_t word = 0;

	if (at + sizeof(word) <= n)
		memcpy(&word, code + at, sizeof(word));
	return word;
}

static void read_stub(const uint8_t *code, size_t n, uint64_t vaddr, struct arch_stub *ret)
{
	uint32_t auipc = word_at(code, n, 0), ld = word_at(code, n, 4);

	*ret = (struct arch_stub){.size = STUB_SIZE};
	if ((auipc & 0xfff) == 0x397) { /* auipc t2 */
		ret->size = SHARED_SIZE;
		return;
	}
	if ((auipc & 0xfff) != 0xe17 || (ld & 0xfffff) != 0xe3e03) /* auipc t3; ld t3, ?(t3) */
		return;
	ret->kind = ARCH_STUB_SLOT;
	ret->target = vaddr + (uint64_t)(int64_t)(int32_t)(auipc & 0xfffff000) +
		      (uint64_t)(int64_t)((int32_t)ld >> 20);
}

const struct arch arch_riscv64 = {
	.machine = EM_RISCV,
	.name = "riscv64",
	.r_jump_slot = R_RISCV_JUMP_SLOT,
	.r_glob_dat = R_RISCV_64,
	.r_irelative = R_RISCV_IRELATIVE,
	.r_relative = R_RISCV_RELATIVE,
	.stub = read_stub,
};
