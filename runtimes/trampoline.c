/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/trampoline.h"

#include "runtimes/arch.h"
#include "runtimes/image.h"

/* More than a trampoline has, on each side of a place in it. */
enum { AROUND = 16, PAGE = 4096 };

bool trampoline_is_image(struct memory *m, uint64_t image)
{
	struct image i;

	return image_open(&i, m, image) && image_symbol(&i, "_PyRuntime") &&
	       image_symbol(&i, "PyUnstable_PerfMapState_Init");
}

enum runtime_step trampoline_step(struct memory *m, const struct runtime_stack *stack,
				  struct runtime_regs *regs)
{
	uint8_t code[2 * AROUND];
	size_t n_before = regs->pc % PAGE < AROUND ? regs->pc % PAGE : AROUND;
	uint64_t sp = regs->sp, pc;
	uint32_t n;

	/* What is in front of the first one of all may not be mapped. */
	if (regs->file_end || !memory_read(m, regs->pc - n_before, code, n_before + AROUND))
		return RUNTIME_NOT_MINE;
	n = arch_trampoline_cfa(code, n_before, AROUND);
	if (n == 0)
		return RUNTIME_NOT_MINE;
	if (!runtime_stack_u64(stack, sp + n - 8, &pc))
		return RUNTIME_TRUNCATED;
	if (pc == 0)
		return RUNTIME_UNPROVEN;
	regs->pc = pc;
	regs->sp = sp + n;
	regs->innermost = false;
	regs->called_own = false;
	return RUNTIME_STEP;
}
