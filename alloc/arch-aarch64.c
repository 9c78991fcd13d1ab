/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/arch.h"

#define MARKER(name)                                                                               \
	".globl " name "\n.type " name ", %function\n.p2align 6\n" name ":\n.cfi_startproc\n"      \
	"nop\nret\n.cfi_endproc\n.size " name ", .-" name "\n"
__asm__(".text\n" MARKER("perfwalk_alloc_sample") MARKER("perfwalk_free_sample"));

uint64_t arch_cycles(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}
