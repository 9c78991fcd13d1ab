/* SPDX-License-Identifier: Apache-2.0 */
/* For processors on which we cannot walk frames of HotSpot: nothing here is called. */
#include "runtimes/arch.h"

const uint8_t arch_hotspot_tried[] = {0};
const bool arch_looks_ahead = false;

enum frame_shape arch_frame_shape(const uint8_t *code, size_t n_before, size_t n, bool complete)
{
	return SHAPE_FULL;
}

void arch_look_ahead(struct memory *m, uint64_t at, uint64_t end, struct code_ahead *ret) {}

bool arch_is_call(const uint8_t *before, size_t n)
{
	return false;
}

bool arch_interpreted(const struct hotspot *h, const struct runtime_stack *stack, uint64_t fp,
		      struct interpreted *ret)
{
	return false;
}

bool arch_entering(const struct hotspot *h, const struct runtime_stack *stack,
		   const struct runtime_regs *regs, struct interpreted *ret)
{
	return false;
}

uint64_t arch_sender_sp(const struct hotspot *h, const struct runtime_regs *regs)
{
	return 0;
}

uint64_t arch_bcp(const struct runtime_regs *regs)
{
	return 0;
}

bool arch_fp_frame(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret)
{
	return false;
}

bool arch_framed(const struct runtime_stack *stack, const struct runtime_regs *regs, uint32_t words,
		 enum frame_shape shape, struct interpreted *ret)
{
	return false;
}

bool arch_return(const struct runtime_stack *stack, const struct runtime_regs *regs,
		 struct interpreted *ret)
{
	return false;
}
