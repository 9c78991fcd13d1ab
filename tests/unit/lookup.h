/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The function at an address of a file, with its name. */
#include "symbolize/symbolize.h"

/* 0: found; 1: no function covers the address, or its name cannot be read. */
static inline int symbol_file_lookup(struct symbol_file *f, uint64_t vaddr, struct symbol *ret)
{
	struct symbol s;

	if (symbol_file_find(f, vaddr, &s) != 0)
		return 1;
	s.name = symbol_name(&s);
	if (!s.name)
		return 1;
	*ret = s;
	return 0;
}
