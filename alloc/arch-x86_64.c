/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/arch.h"

/* A nop of five bytes: from Linux 6.18 on the kernel makes a call of it, which costs a third of the
 * trap that older ones set; both never step over it. */
#define MARKER(name)                                                                               \
	".globl " name "\n.type " name ", @function\n.p2align 6\n" name ":\n.cfi_startproc\n"      \
	"nopl 0(%rax,%rax,1)\nret\n.cfi_endproc\n.size " name ", .-" name "\n"
__asm__(".text\n" MARKER("perfwalk_alloc_sample") MARKER("perfwalk_free_sample"));

uint64_t arch_cycles(void)
{
	return __builtin_ia32_rdtsc();
}
