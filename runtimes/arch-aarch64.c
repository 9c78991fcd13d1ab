/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>

#include "runtimes/arch.h"

/* struct user_regs_struct: x0 to x30, sp, pc. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret)
{
	if (n < RUNTIME_N_REGS * sizeof(ret->r[0]))
		return false;
	*ret = (struct runtime_regs){.innermost = true};
	memcpy(ret->r, prstatus, sizeof(ret->r));
	ret->pc = ret->r[32];
	ret->sp = ret->r[31];
	ret->fp = ret->r[29];
	return true;
}

/* ---- CPython ---- */

/* They have frame pointers. */
uint32_t arch_trampoline_cfa(const uint8_t *code, size_t n_before, size_t n)
{
	(void)code;
	(void)n_before;
	(void)n;
	return 0;
}

bool arch_thread_number(struct memory *m, uint64_t thread, uint32_t *ret)
{
	enum { GLIBC_TID = 0xd0 };

	return thread && thread % 8 == 0 && memory_read(m, thread + GLIBC_TID, ret, sizeof(*ret));
}

uint64_t arch_loaded_variable(struct memory *m, uint64_t function, size_t i)
{
	return 0;
}

const bool arch_has_ruby = false;

/* adrp x0, page; ldr x0, [x0, offset]; ret */
uint64_t arch_returned_variable(struct memory *m, uint64_t function)
{
	uint32_t code[3];
	uint64_t pages;

	if (!function || !memory_read(m, function, code, sizeof(code)) ||
	    (code[0] & 0x9f00001f) != 0x90000000 || (code[1] & 0xffc003ff) != 0xf9400000 ||
	    code[2] != 0xd65f03c0)
		return 0;
	pages = (code[0] >> 29 & 3) | (code[0] >> 5 & 0x7ffff) << 2;
	if (pages & 0x100000)
		pages |= ~UINT64_C(0x1fffff);
	return (function & ~UINT64_C(0xfff)) + (pages << 12) +
	       (uint64_t)(code[1] >> 10 & 0xfff) * 8;
}

/* b; b.cond */
bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	uint32_t word;
	int64_t distance;

	if (at % 4 != 0 || n - at < 4)
		return false;
	memcpy(&word, code + at, sizeof(word));
	if ((word & 0xfc000000) == 0x14000000)
		distance = (int32_t)(word << 6) >> 6;
	else if ((word & 0xff000010) == 0x54000000)
		distance = (int32_t)(word << 8) >> 13;
	else
		return false;
	*ret = (int64_t)at + distance * 4;
	return true;
}

bool arch_load(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	return false;
}

const uint64_t arch_thread_vector = 0;
/* Of musl 1.2.3, compared with what a static program says of its threads under qemu-user. */
const struct arch_musl arch_musl = {
	.previous = 8, .next = 16, .number = 32, .pointer = 200, .vector = -8};
const int arch_go_register = 28;
const int arch_go_near = 16;

enum arch_thread_relocation arch_thread_relocation(uint32_t type)
{
	return type == R_AARCH64_TLS_TPREL    ? ARCH_THREAD_OFFSET
	       : type == R_AARCH64_TLS_DTPMOD ? ARCH_THREAD_MODULE
	       : type == R_AARCH64_TLSDESC    ? ARCH_THREAD_DESCRIPTOR
					      : ARCH_THREAD_NONE;
}

/* They are behind it. */
bool arch_is_thread_offset(int64_t offset)
{
	return offset >= 16 && offset < (INT64_C(1) << 32);
}

int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value)
{
	return (int64_t)((16 + align - 1) / align * align + value);
}

/* The struct ends at the thread pointer, and its size depends on the version. Tried with glibc 2.36
 * (tests/kernels). */
uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes)
{
	enum { LIST = 0xe0 };

	return bytes > LIST && robust_list > LIST ? robust_list - LIST + bytes : 0;
}
