/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The trampolines of CPython 3.12 and later under -X perf (perf_trampoline.c): each function is
 * called through a few instructions of its own, for which perf maps have a name. They are on the
 * native stack, in anonymous memory, and have no call frame information.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"

/* image: where the file's first byte is mapped. May CPython in it make trampolines? */
bool trampoline_is_image(struct memory *m, uint64_t image);
/* As hotspot_step(); it has no functions. */
enum runtime_step trampoline_step(struct memory *m, const struct runtime_stack *stack,
				  struct runtime_regs *regs);
