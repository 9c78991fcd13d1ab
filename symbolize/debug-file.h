/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debugging information outside of the ELF file: the separate debug file, and the supplementary
 * file of dwz. The caller's function finds a file; this room checks that it belongs to the program.
 */
#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf-image.h"
#include "symbolize/symbolize.h"

#define DEBUG_LINK_MAX 256

struct debug_link {
	char name[DEBUG_LINK_MAX]; /* "": not known */
	uint32_t crc;		   /* of the whole file of that name */
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t n_build_id; /* 0: not known */
};

/* Reads the link to the separate debug file: .gnu_debuglink, and the build id that both have. */
void debug_link_read(struct debug_link *ret, const struct elf_image *im);
/* Reads the link to the supplementary file: .gnu_debugaltlink. */
void debug_link_read_alt(struct debug_link *ret, const struct elf_image *im);

/*
 * Opens the file that link names. 0: *ret is open, and the caller owns its descriptor; 1: there is
 * no such file; -ENOEXEC: it belongs to another file. im: the file that has the link.
 */
int debug_file_open(const struct debug_link *link, const struct elf_image *im,
		    symbol_open_debug_fn open_debug, void *ctx, struct elf_image *ret);
int debug_file_open_alt(const struct debug_link *link, symbol_open_debug_fn open_debug, void *ctx,
			struct elf_image *ret);
