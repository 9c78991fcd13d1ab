/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of an ELF file that symbolization needs, read within bounds: header, segments,
 * sections, and the bytes of a section. Both classes, but only the byte order of this host.
 *
 * Not a general ELF library: it writes nothing, converts only headers, and refuses a damaged
 * section rather than repairing it.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct note;

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct elf_section {
	uint32_t name, type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

/* Bytes of a section: mapped from the file, inflated, or borrowed from an image in memory. */
struct elf_bytes {
	const uint8_t *data;
	size_t n;
	struct mapped_file *file; /* NULL: not mapped */
	void *heap;		  /* what to free, NULL: nothing */
	bool compressed;
};

struct elf_image {
	int fd;		       /* borrowed; -EBADF: memory, or all bytes were read */
	const uint8_t *memory; /* borrowed; NULL: fd */
	uint64_t n_bytes;
	bool is64;
	uint16_t type, machine;
	struct elf_segment *segments;
	struct elf_section *sections;
	uint32_t n_segments, n_sections;
	struct elf_bytes names; /* of the sections; ends with the 0 of the last one */
};
#define ELF_IMAGE_INIT                                                                             \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* 0; -ENOEXEC: not an ELF file of this byte order, or its header or segments are damaged; -ENOMEM;
 * -errno of reading. Damaged section headers count as none. The descriptor or image is borrowed as
 * long as the caller reads bytes. */
int elf_image_open_fd(struct elf_image *im, int fd);
int elf_image_open_memory(struct elf_image *im, const void *image, size_t n);
void elf_image_close(struct elf_image *im);

/* Converts an ELF virtual address to a file offset, by the segments that have all these PF_ flags.
 * false: it is in the file part of none. */
bool elf_image_offset(const struct elf_image *im, uint64_t address, uint32_t flags,
		      uint64_t *ret_offset);

/* n bytes at a file offset, all or -ENOEXEC (or -errno). */
int elf_image_read(const struct elf_image *im, uint64_t offset, void *ret, size_t n);

/* The section's name, or "". Valid until close. */
const char *elf_image_section_name(const struct elf_image *im, const struct elf_section *s);
/* The first section of that name; NULL: none. */
const struct elf_section *elf_image_find(const struct elf_image *im, const char *name);
/* The first section of that SHT_ type; NULL: none. */
const struct elf_section *elf_image_find_type(const struct elf_image *im, uint32_t type);

/*
 * The bytes of a section; free them with elf_bytes_release(). They outlive the image and its
 * descriptor, but they are those of the file: they change when it is written, and read as zeros
 * where it was truncated (util/mapped-file.h). 0; -ENOEXEC: not within the file; -EFBIG: more than
 * max_bytes; -ENOMEM; -errno of mapping.
 */
int elf_image_bytes(const struct elf_image *im, const struct elf_section *s, uint64_t max_bytes,
		    struct elf_bytes *ret);
/* Reads a symbol at p in a symbol table of either class, as a 64-bit one. */
Elf64_Sym elf_symbol(const uint8_t *p, bool is64);
/* Decompresses a section in place: zlib, also in the form of .zdebug_*, and zstd. 0; -ENOEXEC:
 * damaged; -EOPNOTSUPP: this build lacks the library; -EFBIG: more than max_bytes; -ENOMEM. */
int elf_bytes_inflate(struct elf_bytes *b, bool is64, uint64_t max_bytes);
/* The same for an xz stream; -EFBIG also if the decoder needs more than 128 MiB. */
int elf_bytes_unxz(struct elf_bytes *b, uint64_t max_bytes);
/* Makes the pages present, so that one pass over them takes no faults. */
void elf_bytes_populate(const struct elf_bytes *b);
/* Gives the pages of a mapping back; the next access reads them again. */
void elf_bytes_forget(const struct elf_bytes *b);
void elf_bytes_release(struct elf_bytes *b);

/* Called with each note (util/notes.h). Return true to stop. */
typedef bool (*elf_note_fn)(void *ctx, const struct note *note);
/* All notes of sections and segments, within limits. A damaged note ends its section or segment. */
void elf_image_each_note(const struct elf_image *im, elf_note_fn fn, void *ctx);

#define ELF_BUILD_ID_MAX 64
/* NT_GNU_BUILD_ID: returns its length; 0: none. */
size_t elf_image_build_id(const struct elf_image *im, uint8_t ret[ELF_BUILD_ID_MAX]);

/* elf-dynamic.c: finds the dynamic symbols and their strings without section headers, and describes
 * them as sections. false: there are none. */
bool elf_dynamic_symbols(const struct elf_image *im, struct elf_section *ret_symbols,
			 struct elf_section *ret_strings);
