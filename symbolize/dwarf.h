/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Source lines and inlined callers of one ELF file, from DWARF 2 to 5. Does not use symbol tables;
 * dwarf.c says what is read when, and what is kept.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf-image.h"
#include "symbolize/symbolize.h"

struct dwarf;

/* One function of a chain. Texts are borrowed, valid until the next lookup, trim or free. */
struct dwarf_frame {
	const char *name; /* the linkage name if the compiler gives it; NULL: unknown */
	const char *file; /* NULL: unknown */
	uint32_t line, column, start_line; /* 0: unknown */
	uint64_t entry; /* offset of the function's entry; tells functions apart */
};

/*
 * im: an open image; a duplicate of its descriptor is kept. Addresses outside of [code_start,
 * code_end) belong to no function. 0; 1: it has no debugging information, *ret is NULL; -ENOMEM;
 * -errno.
 */
int dwarf_new(struct dwarf **ret, const struct elf_image *im, const struct symbol_limits *limits,
	      uint64_t code_start, uint64_t code_end);
struct dwarf *dwarf_free(struct dwarf *d);
DEFINE_CLEANUP(struct dwarf *, dwarf_free)

/* Sets the function that opens split files; without it (NULL, as at first) there are none. */
void dwarf_set_open_split(struct dwarf *d, symbol_open_split_fn open_split, void *ctx);

/*
 * Takes ownership of alt, the supplementary file (.gnu_debugaltlink, made by dwz), opened with code
 * 0, 0.
 */
void dwarf_set_alt(struct dwarf *d, struct dwarf *alt);

/*
 * The chain at an address: innermost inlined function first, the function that has the code last.
 * At most max frames; the outermost are kept. 0: *ret_n >= 1 frames; 1: nothing is known.
 * *ret_language: "c", "c++", "go", "rust", "d", "fortran", "ada", "swift", "zig" or NULL; static.
 */
int dwarf_lookup(struct dwarf *d, uint64_t vaddr, struct dwarf_frame *frames, size_t max,
		 size_t *ret_n, const char **ret_language);

/* Unmaps the file. Tables made from it stay, within the limit. From now on, what failed for lack of
 * memory is tried again. */
void dwarf_trim(struct dwarf *d);
/* Forgets everything that can be read again, and which parts could not be read. */
void dwarf_forget(struct dwarf *d);
/* Memory of all tables, in bytes. */
size_t dwarf_bytes(const struct dwarf *d);
/* The number of units and sections that were damaged or exceeded a limit. */
uint64_t dwarf_refused(const struct dwarf *d);
