/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Go's own table of functions (.gopclntab), which every Go program keeps, stripped or not.
 *
 * Formats since Go 1.18 (magic ..f0) and since 1.20 (..f1), as in cmd/internal/objabi,
 * runtime/symtab.go and runtime2.go of Go's source: a header and five tables that refer to each
 * other by offset. They hold functions by address, names, files, files of compile units, and
 * programs that give a value (line, file, distance of the stack pointer) for each pc of a function.
 * Addresses of functions are relative to the start of the code, runtime.text. The header has that
 * address up to 1.25, except in position-independent programs; the runtime's moduledata always has
 * it (go-module.h).
 *
 * Nothing is copied: a lookup is a binary search in the bytes, and a program has tens of bytes. All
 * work is bounded, whatever the bytes are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GO_MAGIC_118 = 0xfffffff0,
	GO_MAGIC_120 = 0xfffffff1,
};

struct go_functions {
	const uint8_t *data; /* borrowed */
	size_t n;
	uint32_t magic, n_funcs;
	uint8_t quantum;			       /* bytes of a pc unit in programs */
	uint64_t names, units, files, programs, funcs; /* offsets in data */
	uint64_t text;				       /* the start of the code */
};

/* One function, of struct _func. */
struct go_function {
	uint64_t start, end; /* addresses */
	uint64_t arrays;     /* offset of what follows it: pcdata, then funcdata, of 4 bytes */
	uint32_t name;
	uint32_t sp_program, file_program, line_program;
	uint32_t n_pcdata, unit, start_line; /* start_line: 0 up to 1.19 */
	uint8_t flags, n_funcdata;
};

/* Reads the header of a table of n bytes. ret->text is 0 if the header does not give it. False: not
 * a table, or an unknown format. */
bool go_functions_read(struct go_functions *ret, const uint8_t *data, size_t n);

/* The 4 bytes at an offset of the table; 0 beyond its end. */
uint32_t go_functions_u32(const struct go_functions *t, uint64_t offset);
/* The string at an offset of the table, borrowed from its bytes; "": none. */
const char *go_functions_string(const struct go_functions *t, uint64_t offset);

/* Row of the last function that begins at or before offset (from text); n_funcs: none. */
uint32_t go_functions_row(const struct go_functions *t, uint64_t offset);
/* Where a row begins, from text. The row n_funcs is the end of the last function. */
uint32_t go_functions_begin(const struct go_functions *t, uint32_t row);
/* The function at an address. */
bool go_functions_find(const struct go_functions *t, uint64_t vaddr, struct go_function *ret);

struct go_value {
	int32_t value;
	uint64_t start, end; /* the pcs that have the value */
};
/* Runs a program of f, at most that many steps, for its value at pc. False: none. */
bool go_functions_run(const struct go_functions *t, const struct go_function *f, uint32_t program,
		      uint64_t pc, uint32_t max_steps, struct go_value *ret);
