/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the runtime's struct moduledata of a Go program (runtime/symtab.go since Go 1.18), which
 * has what its table of functions (.gopclntab) lacks. The struct holds the address of that table:
 * in the bytes of the file, or in the addends of relocations if the program is position
 * independent. Finds also the table itself, if no section has its name.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of the struct: six slices are between the first and the next */
enum {
	GO_MODULE_NAMES = 1,
	GO_MODULE_MIN_PC = 20,
	GO_MODULE_TEXT = 22,
	GO_MODULE_GO_FUNC_118 = 38,
	GO_MODULE_GO_FUNC_120 = 40, /* after the counters of coverage */
	GO_MODULE_WORDS = 41,
};

struct go_module {
	uint64_t words[GO_MODULE_WORDS];
};

/* What we know about the table, and must find in the struct. */
struct go_module_key {
	uint64_t table;		 /* address of .gopclntab */
	uint64_t names;		 /* address of its names */
	uint32_t first_function; /* offset of the first function from the beginning of the code */
};

/* Searches n bytes of a data section at that address. */
bool go_module_find(const struct go_module_key *key, const uint8_t *bytes, size_t n,
		    uint64_t address, struct go_module *ret);
/* Searches n bytes of a section of Elf64_Rela; relative: the type of a relative relocation. */
bool go_module_find_relocated(const struct go_module_key *key, const uint8_t *bytes, size_t n,
			      uint32_t relative, struct go_module *ret);

/* Finds the table in n bytes of a section at that address: up to 1.25 the table of a
 * position-independent program needs relocations, and a C linker makes it a part of .data.rel.ro.
 * Returns its offset; n: not there. Checks only the first words of its header. */
size_t go_module_find_table(const uint8_t *bytes, size_t n, uint64_t address);

/* A section that every Go program has. */
#define GO_MODULE_MARK ".go.buildinfo"
/* The sections that may hold it, in the order of search; ends with NULL. */
extern const char *const go_module_data_sections[];
extern const char *const go_module_relocation_sections[];
