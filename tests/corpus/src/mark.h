/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the recorder's stepping begins, and where it ends. */
#define MARK()	 __asm__ volatile("int3" ::: "memory")
#define NOINLINE __attribute__((noinline))
extern volatile int sink;
