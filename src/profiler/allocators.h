/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads samples of allocations, from the allocation library (alloc/), or from a runtime with an
 * allocator of its own, at the places that symbolize/alloc-place.h finds.
 */
#include <stdbool.h>
#include <stdint.h>

struct alloc_places;
struct attribution;
struct host_mapping;
struct record;

/* A block that was picked. */
struct picked_block {
	uint64_t address;
	double bytes, objects; /* how much it stands for */
	bool ends;	       /* its end will be sampled */
	bool maybe_again;      /* it may be sampled twice, one right after the other */
	uint64_t table;	       /* the library's table of blocks in its process; 0: none */
	/* The runtime that picked it, whose own frames its stack begins with; NULL: the library.
	 * Valid as long as its file is known. */
	const struct alloc_places *places;
	uint64_t start, end; /* the mapping of the runtime's file */
	uint64_t moved;	     /* by how much addresses exceed offsets in the file */
};

/* Reads a sample of a->process. false: it contradicts itself. */
bool allocator_read_picked(struct attribution *a, const struct record *r, struct picked_block *ret);
/* Is that the address of a frame of the runtime that picked the block? */
bool allocator_has(const struct picked_block *b, uint64_t address);
/* Is that the name of code between a Java method and HotSpot's allocator? */
bool allocator_is_stub(const char *name);
/* Reads the end of a block. undone: the last block that this thread freed is in use after all.
 * false: the record contradicts itself. */
bool allocator_read_ended(struct attribution *a, const struct record *r, uint64_t *ret_address,
			  bool *ret_undone);

/* May a file of that name have a runtime's own allocator? */
bool allocator_is_likely(const char *path);
/* The places of an allocator in the file of a mapping of a->process, which is read at first sight,
 * or later if looks have had their share of the time: NULL until then, or if it has none. */
const struct alloc_places *allocator_look(struct attribution *a, struct host_mapping *m);
