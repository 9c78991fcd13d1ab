/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The exported symbols of a library in the memory of a process, from its own dynamic tables. */
#include "runtimes/memory.h"

struct image {
	struct memory *memory; /* borrowed */
	uint64_t base;	       /* runtime address of its first byte */
	uint64_t bias;	       /* runtime address - ELF virtual address */
	uint64_t start, end;   /* runtime addresses of all that is loaded */
	uint64_t symbols, strings, n_strings;
	uint64_t gnu_hash, hash; /* 0: none */
	uint64_t frame_table;	 /* .eh_frame_hdr; 0: none */
	uint64_t relocations, n_relocations, plt_relocations, n_plt_relocations; /* n: bytes */
	uint64_t thread_bytes, thread_align; /* of its thread-local variables */
	bool is_program;
};

/* base: where the file's first byte is mapped; memory: borrowed. false: not a library with a table
 * of symbols. */
bool image_open(struct image *ret, struct memory *memory, uint64_t base);
/* The address of an exported symbol; 0: there is none. */
uint64_t image_symbol(const struct image *image, const char *name);
/* The offset of an exported thread-local variable in the block of its module; false: there is
 * none. */
bool image_thread_symbol(const struct image *image, const char *name, uint64_t *ret);
/* Does the library itself define the symbol of that index, under that name? */
bool image_symbol_is(const struct image *image, uint32_t index, const char *name);
/* The addresses [start, end) of an exported function or variable; false: there is none. */
bool image_symbol_range(const struct image *image, const char *name, uint64_t *ret_start,
			uint64_t *ret_end);
/* The addresses [start, end) of the function, or the part of one, that pc is in, from the call
 * frame information; false: unknown. */
bool image_code_range(const struct image *image, uint64_t pc, uint64_t *ret_start,
		      uint64_t *ret_end);
