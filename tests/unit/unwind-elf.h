/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small ELF files made in memory, with CFI written by hand. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t data[256 * 1024];
	size_t n;
};
void bytes_put(struct bytes *b, const void *data, size_t n);
void bytes_u8(struct bytes *b, unsigned int v);
void bytes_u32(struct bytes *b, uint32_t v);
void bytes_u64(struct bytes *b, uint64_t v);
void bytes_uleb(struct bytes *b, uint64_t v);

/*
 * Appends a CIE (augmentation "zR" with absolute addresses, or "zRS") whose CFA is rsp + 8 and
 * whose return address is at CFA - 8; its offset. debug: in .debug_frame's form.
 */
size_t elf_cie(struct bytes *b, int debug, int signal_frame);
/* One with other instructions. */
size_t elf_cie_of(struct bytes *b, int debug, int signal_frame, const void *code, size_t n_code);
/* An FDE of that CIE with the given instructions. */
void elf_fde(struct bytes *b, int debug, size_t cie, uint64_t start, uint64_t n, const void *code,
	     size_t n_code);

#define ELF_TEXT      UINT64_C(0x401000) /* address of the code */
#define ELF_TEXT_SIZE UINT64_C(0x10000)

struct elf_spec {
	const struct bytes *eh_frame, *debug_frame;
	uint64_t debug_flags;	/* SHF_COMPRESSED */
	const char *debug_name; /* NULL: .debug_frame */
	uint64_t entry;
};
/* An executable with one code segment of zeros at ELF_TEXT and these sections. */
void elf_make(struct bytes *ret, const struct elf_spec *spec);
