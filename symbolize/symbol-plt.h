/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names for the stubs of the procedure linkage table, which have no symbols of their own. */
#include "symbolize/arch.h"
#include "symbolize/elf-image.h"
#include "symbolize/symbol-table.h"

#define SYMBOL_PLT_SECTIONS 3

struct symbol_plt_stub {
	uint64_t start;
	uint32_t size, name; /* name: kept by the table, 0: none */
};

struct symbol_plt {
	const struct arch *arch; /* NULL: unknown, no names */
	struct {
		uint64_t vaddr;
		struct elf_bytes code;
	} sections[SYMBOL_PLT_SECTIONS];
	struct elf_bytes relocations[2];     /* .rela.plt, .rela.dyn */
	struct elf_bytes symbols;	     /* .dynsym */
	ARRAY(struct symbol_plt_stub) stubs; /* sorted */
	bool built;
};

/* Maps the tables that name stubs; reads nothing yet. */
void symbol_plt_init(struct symbol_plt *plt, const struct elf_image *im, uint64_t max_bytes);
void symbol_plt_deinit(struct symbol_plt *plt);
/* The stub at an address; false: none. Its name comes from SYMBOL_NAMES_DYNAMIC of t and is kept in
 * t. The first lookup in a stub section builds the list. */
bool symbol_plt_lookup(struct symbol_plt *plt, struct symbol_table *t, uint64_t vaddr,
		       const char **ret_name, uint64_t *ret_start, uint64_t *ret_size);
