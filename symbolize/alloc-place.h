/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where runtimes with an allocator of their own tell of the blocks that they pick anyway, for their
 * own profiles: functions on which a probe sees the same blocks. All places are offsets in the
 * file.
 *
 * Go picks each 512 KiB on average, or what the program has set runtime.MemProfileRate to, by
 * chance, and calls mProf_Malloc(block, size) (from 1.23 on (thread, block, size)), later
 * freeSpecial(record, block, size). HotSpot calls its AllocTracer for the first block in each
 * buffer that a thread gets to allocate from (class, block, buffer's size, size), and for each
 * block outside of these (class, block, size).
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
	uint64_t picked[ALLOC_PLACES_PICKED]; /* HotSpot: in a new buffer, outside of buffers */
	uint64_t ended;			      /* 0: none */
	/* Go: where runtime.MemProfileRate is in memory, as if its address were one of code; 0: not
	 * known. */
	uint64_t rate;
	/* Code of the runtime, which is what calls them, by offset; HotSpot: the whole file. */
	struct alloc_code {
		uint64_t start, end;
	} code[ALLOC_PLACES_CODE];
	uint32_t n_code;
};

/* Is that offset in the code of the runtime? */
bool alloc_places_have(const struct alloc_places *p, uint64_t offset);
/* Reads a library called libjvm.so, or a Go program. 0; -ENOENT: it is neither, or lacks the
 * functions; -errno of reading. */
int alloc_places_find(int fd, const char *path, struct alloc_places *ret);
