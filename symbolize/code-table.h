/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions that come and go, as a just-in-time compiler reports them. A later one replaces the
 * parts of earlier ones that it overlaps; see code-table.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/array.h"

#define CODE_MAX_ENTRIES (1u << 20)
#define CODE_MAX_RANGE	 (UINT64_C(1) << 30)

/*
 * A function, or a part of it that is left: [start, start + size). The function began skip bytes
 * before start.
 */
struct code_entry {
	uint64_t start;
	uint32_t size, skip, whole; /* whole: the size of the whole function */
	uint32_t name, n_more;	    /* offset in the blob; bytes after the name's 0 */
};

struct code_table {
	uint64_t max_bytes;
	ARRAY(struct code_entry) rows;	  /* sorted, without overlaps */
	ARRAY(struct code_entry) pending; /* in the order of arrival */
	char *blob;
	size_t n_blob, cap_blob;
	uint64_t n_refused;
};

void code_table_init(struct code_table *t, uint64_t max_bytes);
void code_table_deinit(struct code_table *t);
/* Forgets all functions, keeps the memory. */
void code_table_clear(struct code_table *t);

/*
 * Adds a function with a name of n_name > 0 bytes, none of them 0, and n_more other bytes of the
 * caller, which are kept with it. 0, also if it is refused (counted): no size, a range over 1 GiB,
 * more than 1 Mi functions or more than max_bytes; -ENOMEM. If name and bytes equal those of the
 * last function, they take no memory.
 */
int code_table_add(struct code_table *t, uint64_t start, uint64_t size, const char *name,
		   size_t n_name, const void *more, size_t n_more);
/* The function at an address, valid until the next add or lookup. NULL: none, or no memory. */
const struct code_entry *code_table_lookup(struct code_table *t, uint64_t address);

/*
 * The part of e around an address that later functions have left; a lookup found the address in e.
 */
void code_table_piece(const struct code_table *t, const struct code_entry *e, uint64_t address,
		      uint64_t *ret_start, uint64_t *ret_end);

static inline const char *code_table_name(const struct code_table *t, const struct code_entry *e)
{
	return t->blob + e->name;
}

/* Memory held, in bytes. */
size_t code_table_bytes(const struct code_table *t);
