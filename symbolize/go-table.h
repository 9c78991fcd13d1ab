/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Go's table of functions (.gopclntab), which every Go program keeps, stripped or not: names,
 * lines and inlined callers of Go code. See go-table.c for the formats.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarf.h"
#include "symbolize/elf-image.h"

struct go_table;

/* Maps the sections of im that it needs; the descriptor is not used later. 0; 1: no such table, or
 * an unknown format, *ret is NULL; -ENOMEM; -EFBIG: more than max_bytes. */
int go_table_new(struct go_table **ret, const struct elf_image *im, uint64_t max_bytes);
struct go_table *go_table_free(struct go_table *t);
DEFINE_CLEANUP(struct go_table *, go_table_free)

/* The function at an address; its name is borrowed, valid until the table is freed. */
bool go_table_lookup(struct go_table *t, uint64_t vaddr, const char **ret_name, uint64_t *ret_start,
		     uint64_t *ret_size);
struct go_code {
	uint64_t start, end; /* addresses */
};

/* The address of the function of that name; reads all names. false: there is none. */
bool go_table_address(struct go_table *t, const char *name, uint64_t *ret);
/* Sets ret to the code of functions whose names begin with one of the prefixes (their list ends
 * with NULL), in the order of addresses. Returns the number of ranges, at most max. */
uint32_t go_table_code(struct go_table *t, const char *const *prefixes, struct go_code *ret,
		       uint32_t max);
/* The chain at an address, as dwarf_lookup() gives it; texts as above. 0: no function. */
size_t go_table_chain(struct go_table *t, uint64_t vaddr, struct dwarf_frame *frames, size_t max);
/* Gives the pages of the file back; the next lookup reads them again. */
void go_table_trim(struct go_table *t);
