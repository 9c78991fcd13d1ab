/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runtime's struct moduledata of a Go program (runtime/symtab.go of Go 1.18 on), which says
 * what its table of functions (.gopclntab) leaves out. It is found as the place that holds the
 * table's own address: as bytes of the file, or as addends of relocations when the program is
 * position independent. And the table itself, where no section has its name.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of the struct: six slices stand between the first and the next */
enum {
	GO_MODULE_NAMES = 1,
	GO_MODULE_MIN_PC = 20,
	GO_MODULE_TEXT = 22,
	GO_MODULE_GO_FUNC_118 = 38,
	GO_MODULE_GO_FUNC_120 = 40, /* behind the counters of coverage */
	GO_MODULE_WORDS = 41,
};

struct go_module {
	uint64_t words[GO_MODULE_WORDS];
};

/* What is known of the table beforehand, and must be in the struct. */
struct go_module_key {
	uint64_t table;		 /* address of .gopclntab */
	uint64_t names;		 /* address of its names */
	uint32_t first_function; /* offset of the first function from the beginning of the code */
};

/* In n bytes of a section of data at that address. */
bool go_module_find(const struct go_module_key *key, const uint8_t *bytes, size_t n,
		    uint64_t address, struct go_module *ret);
/* In n bytes of a section of Elf64_Rela; relative: the type of a relative relocation. */
bool go_module_find_relocated(const struct go_module_key *key, const uint8_t *bytes, size_t n,
			      uint32_t relative, struct go_module *ret);

/* Until 1.25 the table of a position-independent program needs relocations, and a C linker makes it
 * a part of .data.rel.ro. Its offset in n bytes of a section at that address; n: it is not there.
 * Only the first words of its head are checked. */
size_t go_module_find_table(const uint8_t *bytes, size_t n, uint64_t address);

/* The section that every program of Go has. */
#define GO_MODULE_MARK ".go.buildinfo"
/* Names of the sections in which it may lie, by place of search; ends in NULL. */
extern const char *const go_module_data_sections[];
extern const char *const go_module_relocation_sections[];
