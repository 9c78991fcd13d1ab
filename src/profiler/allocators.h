/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What samples of allocations say, by where they are from: the allocation library (alloc/), or a
 * runtime with an allocator of its own, at the places that symbolize/alloc-place.h knows.
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
	double bytes, objects; /* for how many it stands */
	bool ends;	       /* its end will be told */
	bool maybe_again;      /* it may be told twice, one right behind the other */
	uint64_t table;	       /* of the library in its process, of blocks in use; 0: none */
	/* Of a runtime, whose own frames its stack begins with. NULL: of the library. Valid as long
	 * as its file is known. */
	const struct alloc_places *places;
	uint64_t start, end, moved; /* its mapping; what addresses have more than offsets */
};

/* Of a sample of a->process. false: it says nonsense. */
bool allocator_read_picked(struct attribution *a, const struct record *r, struct picked_block *ret);
/* Is that the address of a frame of who picked it? */
bool allocator_has(const struct picked_block *b, uint64_t address);
/* Is that the name of code between a Java method and the allocator of HotSpot? */
bool allocator_is_stub(const char *name);
/* undone: the end that this thread told last did not happen. */
bool allocator_read_ended(struct attribution *a, const struct record *r, uint64_t *ret_address,
			  bool *ret_undone);

/* Whether a file of that name may have a runtime's own allocator. */
bool allocator_is_likely(const char *path);
/* The places of an allocator in the file of a mapping of a->process, which is read at first sight,
 * or later if looks have had their share of the time: NULL until then, or if it has none. */
const struct alloc_places *allocator_look(struct attribution *a, struct host_mapping *m);
