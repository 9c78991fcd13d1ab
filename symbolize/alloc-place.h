/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runtimes with an allocator of their own sample blocks for their own profiles. This module finds
 * the functions that they call for such a block: probes there see the same blocks. All places are
 * offsets in the file.
 *
 * Go samples a block every 512 KiB on average, or every runtime.MemProfileRate bytes if the program
 * sets that. It calls mProf_Malloc(block, size) (since 1.23: (thread, block, size)), and
 * freeSpecial(record, block, size) when the block ends. HotSpot calls its AllocTracer for the first
 * block in each buffer that a thread gets to allocate from (class, block, buffer's size, size), and
 * for each block outside of such buffers (class, block, size).
 */
#include <stdbool.h>
#include <stdint.h>

enum alloc_runtime { ALLOC_RUNTIME_NONE, ALLOC_RUNTIME_GO, ALLOC_RUNTIME_HOTSPOT };

#define ALLOC_PLACES_PICKED 2
#define ALLOC_PLACES_CODE   64
struct alloc_places {
	enum alloc_runtime runtime;
	bool thread_first; /* Go: the block is the second argument, not the first */
	uint32_t n_picked;
	/* The functions called for a sampled block; HotSpot: in a new buffer, outside of buffers.
	 */
	uint64_t picked[ALLOC_PLACES_PICKED];
	uint64_t ended; /* the one called at a block's end; 0: none */
	/* Go: the place of runtime.MemProfileRate, converted like an address of code; 0:
	 * unknown. */
	uint64_t rate;
	/* Code of the runtime itself, sorted: frames there are not the program's. HotSpot: the
	 * whole file. */
	struct alloc_code {
		uint64_t start, end;
	} code[ALLOC_PLACES_CODE];
	uint32_t n_code;
};

/* Is the offset in the code of the runtime? */
bool alloc_places_have(const struct alloc_places *p, uint64_t offset);
/* Reads a library called libjvm.so, or a Go program; fd is borrowed. 0; -ENOENT: it is neither, or
 * lacks the functions; -errno of reading. */
int alloc_places_find(int fd, const char *path, struct alloc_places *ret);
