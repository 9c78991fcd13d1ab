/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that spend their time in a system call, with their frame on one callee-saved register
 * each: who takes the wrong value for it finds no caller, or a wrong one. Old kernels have wrong
 * values for samples in system calls, some without saying so.
 */
#include <fcntl.h>
#include <unistd.h>

#include "common.h"

#define BYTES 65536
#define CALLS 100

#ifdef __x86_64__
#define FUNCTION(reg)                                                                              \
	void registers_##reg(int fd, void *buffer, size_t n);                                      \
	__asm__(".text\n"                                                                          \
		".globl registers_" #reg "\n"                                                      \
		".type registers_" #reg ", @function\n"                                            \
		"registers_" #reg ":\n"                                                            \
		"	.cfi_startproc\n"                                                                \
		"	push %" #reg "\n"                                                          \
		"	.cfi_def_cfa_offset 16\n"                                                        \
		"	.cfi_offset %" #reg ", -16\n"                                              \
		"	mov %rsp, %" #reg "\n"                                                     \
		"	.cfi_def_cfa_register %" #reg "\n"                                         \
		"	sub $32, %rsp\n"                                                                 \
		"	movq $100, (%rsp)\n"                                                             \
		"1:	xor %eax, %eax\n" /* read() */                                             \
		"	syscall\n"                                                                       \
		"	decq (%rsp)\n"                                                                   \
		"	jnz 1b\n"                                                                        \
		"	mov %" #reg ", %rsp\n"                                                     \
		"	.cfi_def_cfa_register %rsp\n"                                                    \
		"	pop %" #reg "\n"                                                           \
		"	.cfi_def_cfa_offset 8\n"                                                         \
		"	.cfi_restore %" #reg "\n"                                                  \
		"	ret\n"                                                                           \
		"	.cfi_endproc\n"                                                                  \
		".size registers_" #reg ", . - registers_" #reg "\n")
#else
#define FUNCTION(reg)                                                                              \
	KNOWN void registers_##reg(int fd, void *buffer, size_t n)                                 \
	{                                                                                          \
		for (int i = 0; i < CALLS; i++)                                                    \
			(void)!read(fd, buffer, n);                                                \
		KEEP_FRAME();                                                                      \
	}                                                                                          \
	_Static_assert(1, "")
#endif

FUNCTION(rbx);
FUNCTION(rbp);
FUNCTION(r12);
FUNCTION(r13);
FUNCTION(r14);
FUNCTION(r15);

KNOWN void registers_all(int fd, void *buffer)
{
	registers_rbx(fd, buffer, BYTES);
	registers_rbp(fd, buffer, BYTES);
	registers_r12(fd, buffer, BYTES);
	registers_r13(fd, buffer, BYTES);
	registers_r14(fd, buffer, BYTES);
	registers_r15(fd, buffer, BYTES);
	KEEP_FRAME();
}

int main(void)
{
	static char buffer[BYTES];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (;;)
		registers_all(fd, buffer);
}
