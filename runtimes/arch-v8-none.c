/* SPDX-License-Identifier: Apache-2.0 */
/* For processors on which we cannot walk frames of V8: nothing here is called. */
#include "runtimes/arch-v8.h"

const bool arch_has_v8 = false;
const int arch_v8_link = -1;
const uint64_t arch_v8_entry_bytes = 0;

enum v8_shape arch_v8_shape(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n,
			    uint8_t *ret_register)
{
	return V8_SHAPE_FULL;
}

uint64_t arch_v8_bytecode(const struct runtime_regs *regs)
{
	return 0;
}

uint64_t arch_v8_offset(const struct runtime_regs *regs)
{
	return 0;
}

uint64_t arch_v8_function(const struct runtime_regs *regs)
{
	return 0;
}

uint64_t arch_v8_isolate(const struct runtime_regs *regs)
{
	return 0;
}

bool arch_v8_is_call(const uint8_t *before, size_t n)
{
	return false;
}
