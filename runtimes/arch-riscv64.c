/* SPDX-License-Identifier: Apache-2.0 */
/* riscv64, experimental: no interpreters, only threads of glibc and registers of ptrace. */
#include <elf.h>

#include "runtimes/arch.h"

/* struct user_regs_struct: pc, x1 to x31. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret)
{
	enum { SP = 2, FP = 8, N_REGS = 32 };

	if (n < N_REGS * sizeof(ret->r[0]))
		return false;
	*ret = (struct runtime_regs){.innermost = true};
	memcpy(ret->r, prstatus, N_REGS * sizeof(ret->r[0]));
	ret->pc = ret->r[0];
	ret->sp = ret->r[SP];
	ret->fp = ret->r[FP];
	ret->r[0] = 0;
	ret->r[N_REGS] = ret->pc;
	return true;
}

/* They have frame pointers. */
bool arch_trampoline_shape(const uint8_t *code, size_t n_before, size_t n, enum frame_shape *ret)
{
	(void)code;
	(void)n_before;
	(void)n;
	(void)ret;
	return false;
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

const uint32_t arch_lock_bytes = 0;

uint64_t arch_returned_variable(struct memory *m, uint64_t function)
{
	return 0;
}

bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	return false;
}

bool arch_load(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	return false;
}

const uint64_t arch_thread_vector = 0;
/* Of musl 1.2.3, as on aarch64; not tried. */
const struct arch_musl arch_musl = {
	.previous = 8, .next = 16, .number = 32, .pointer = 200, .vector = -8};
/* s11; Go's threads beside those of the C library are not known. */
const int arch_go_register = 27;
const int arch_go_near = 0;

enum arch_thread_relocation arch_thread_relocation(uint32_t type)
{
	return type == R_RISCV_TLS_TPREL64    ? ARCH_THREAD_OFFSET
	       : type == R_RISCV_TLS_DTPMOD64 ? ARCH_THREAD_MODULE
					      : ARCH_THREAD_NONE;
}

/* They are behind it, from it on. */
bool arch_is_thread_offset(int64_t offset)
{
	return offset >= 0 && offset < (INT64_C(1) << 32);
}

int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value)
{
	return (int64_t)value;
}

uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes)
{
	return 0;
}
