/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the recorder's stepping begins, and where it ends. */
#ifdef __x86_64__
#define MARK() __asm__ volatile("int3" ::: "memory")
#else /* a function is stepped through (take-qemu.c) */
#define MARK() ((void)0)
#endif
#define NOINLINE __attribute__((noinline))
extern volatile int sink;
