/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recorded samples: the input of a walk in a file, to walk it again anywhere.
 *
 * A file holds the registers, stack bytes and mappings of some samples, and those bytes of the
 * binaries that a walk (ours or libdw's) reads: headers, the CFI of the walked addresses, the code
 * around them. The rest of a binary reads as zeros.
 *
 * The format, version 1. Numbers are little endian, a text ends with a 0 byte. The whole file may
 * be compressed with gzip.
 *
 *	file      "PWSAMPLE", u32 version, u32 machine (e_machine of ELF), blocks until the end
 *	block     u32 type, u32 n, n bytes of one of these; other types are passed over
 *	module    (1) u64 size of the file, u32 flags (1: the vdso), u32 n, n bytes of GNU build id,
 *	          text: its path; slices until the end: u64 file offset, u32 n, n bytes
 *	mappings  (2) until the end, by ascending address: u64 start, u64 end, u64 file offset,
 *	          u32 module: which of the module blocks (the first is 0), or RECORDED_ANONYMOUS,
 *	          or RECORDED_FILE_MISSING; executable mappings only
 *	sample    (3) u32 mappings: which block of mappings, u32 n, n u64: registers by DWARF
 *	          number, u64 valid: a bit for each that is known, text: what is special about
 *	          it; until the end the bytes of the stack, from sp on
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind.h"
#include "util/array.h"

#define RECORDED_MAGIC	      "PWSAMPLE"
#define RECORDED_VERSION      1u
#define RECORDED_ANONYMOUS    UINT32_MAX
#define RECORDED_FILE_MISSING (UINT32_MAX - 1)
#define RECORDED_VDSO	      1u
enum recorded_block { RECORDED_MODULE = 1, RECORDED_MAPPINGS = 2, RECORDED_SAMPLE = 3 };

enum {
	RECORDED_MAX_MODULES = 256,
	RECORDED_MAX_MAPPINGS = 65536, /* of all blocks */
	RECORDED_MAX_SAMPLES = 4096,
	RECORDED_MAX_BYTES = 64 * 1024 * 1024, /* of the file, inflated */
};
#define RECORDED_MAX_IMAGE_BYTES (UINT64_C(4) << 30) /* of the binaries, zeros included */

struct recorded_module {
	const char *path; /* points into the file's bytes, like the build id and the rest */
	const uint8_t *build_id;
	uint32_t n_build_id, flags;
	uint64_t size;
	uint8_t *image;		      /* size bytes */
	struct unwind_module *module; /* NULL: not opened, or not an ELF file */
};

struct recorded_mapping {
	uint64_t start, end, offset, bias;
	uint32_t module;
};

/* The mappings of some samples: rows [first, first + n) of all mappings. */
struct recorded_maps {
	uint32_t first, n;
};

struct recorded_sample {
	const char *label;
	struct unwind_regs regs;
	const uint8_t *stack;
	size_t n_stack;
	uint32_t maps;
};

struct recorded {
	uint8_t *bytes;
	size_t n_bytes;
	uint64_t n_image_bytes;
	ARRAY(struct recorded_module) modules;
	ARRAY(struct recorded_mapping) mappings;
	ARRAY(struct recorded_maps) maps;
	ARRAY(struct recorded_sample) samples;
	uint32_t current; /* the maps that recorded_find() searches */
};

/*
 * Reads and checks the whole file. 0, -ENOMEM, -errno of reading, or -EBADMSG; then error says what
 * is wrong. fd stays the caller's.
 */
#define RECORDED_ERROR_MAX 128
int recorded_read(struct recorded **ret, int fd, char error[RECORDED_ERROR_MAX]);
/* The same for n bytes in memory, which are not compressed and stay the caller's. */
int recorded_parse(struct recorded **ret, const uint8_t *bytes, size_t n,
		   char error[RECORDED_ERROR_MAX]);
struct recorded *recorded_free(struct recorded *r);
DEFINE_CLEANUP(struct recorded *, recorded_free)

/* Makes modules of the binaries, once; a file that is not ELF gets none. 0 or -ENOMEM. u must live
 * until recorded_free(). */
int recorded_open(struct recorded *r, struct unwinder *u);

/* Walks the i-th sample, as unwind_walk() does. Tags of frames are rows of r->mappings. */
enum unwind_outcome recorded_walk(struct recorded *r, struct unwinder *u, uint32_t i,
				  struct unwind_frame *frames, size_t max_frames, size_t *ret_n);
/* unwind_find_fn over a struct recorded and its current maps. */
bool recorded_find(void *ctx, uint64_t pc, struct unwind_mapping *ret);
