/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "symbolize/arch.h"
#include "util/cleanup.h"

static const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64, &arch_riscv64};

const struct arch *arch_find(uint16_t machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		if (archs[i]->machine == machine)
			return archs[i];
	}
	return NULL;
}

const struct arch *arch_here(void)
{
#ifdef __aarch64__
	return &arch_aarch64;
#elif defined(__riscv)
	return &arch_riscv64;
#else
	return &arch_x86_64;
#endif
}
