/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sorted table of the functions of one ELF file: fill it (add_segment, then add), finish, look up.
 * It knows no ELF except the meaning of a symbol; symbol-table.c has the rule for aliases.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/sort.h"
#include "util/array.h"
#include "util/cleanup.h"

/* Where names are. */
enum symbol_names {
	SYMBOL_NAMES_STATIC,  /* .strtab */
	SYMBOL_NAMES_DYNAMIC, /* .dynstr */
	SYMBOL_NAMES_MINI,    /* .strtab inside .gnu_debugdata */
	N_SYMBOL_NAMES
};
#define SYMBOL_NAMES_MAX_BYTES (UINT64_C(1) << 29) /* the limit of an offset in a row */

/* Rank of an alias, higher is better; SYMBOL_GLOBAL counts only after the names are compared. */
enum symbol_rank {
	SYMBOL_GLOBAL = 1 << 0,	  /* neither weak nor local */
	SYMBOL_EXTERNAL = 1 << 1, /* not local */
	SYMBOL_FUNCTION = 1 << 2, /* typed as a function */
	SYMBOL_SIZED = 1 << 3,
};

struct symbol_segment {
	uint64_t vaddr;
	uint32_t n_bytes, code; /* code: offset of its first byte in code space */
};

struct symbol_row {
	uint32_t size; /* bytes; or ROW_CONTINUED | row of the symbol that goes on here */
	uint32_t name;
};

struct symbol_alias {
	uint32_t name;
	bool global, last;
};

struct symbol_table {
	ARRAY(struct symbol_segment) segments;
	ARRAY(struct sort_pair) candidates; /* key: code and rank; freed by finish */
	uint32_t *codes;		    /* sorted; rows[i] starts at codes[i] */
	struct symbol_row *rows;
	uint32_t *buckets; /* code >> shift -> first row at or after */
	uint32_t n_rows, n_buckets, shift;
	ARRAY(struct symbol_alias) aliases;
	struct {
		const char *bytes; /* borrowed; its last byte is 0 */
		size_t n;
	} names[N_SYMBOL_NAMES];
	ARRAY(char *) chunks; /* names that are in no file */
	uint32_t n_chunk_used;
	char *text; /* the name that was read last */
	size_t n_text;
	bool versions;	    /* names outside of .dynstr may end with @VERSION */
	uint64_t n_refused; /* symbols and names beyond the limits */
};

/* max_symbols: limit of candidates. Nothing is allocated yet. */
void symbol_table_init(struct symbol_table *t, uint32_t max_symbols);
void symbol_table_deinit(struct symbol_table *t);

/*
 * Adds executable memory; symbols outside of all segments are ignored. Call before the first add.
 */
void symbol_table_add_segment(struct symbol_table *t, uint64_t vaddr, uint64_t n_bytes);
/* bytes: borrowed until deinit. An unterminated last string does not count. */
void symbol_table_set_names(struct symbol_table *t, enum symbol_names which, const void *bytes,
			    size_t n);
/*
 * size 0: up to the next symbol, at most to limit (an address: the end of its section; 0: of its
 * segment). rank without SYMBOL_SIZED. 0, or -ENOMEM.
 */
int symbol_table_add(struct symbol_table *t, uint64_t vaddr, uint64_t size, uint64_t limit,
		     enum symbol_names which, uint64_t name, uint32_t rank);
/* Sorts the table; call once. 0, or -ENOMEM. */
int symbol_table_finish(struct symbol_table *t);

/* The row at an address, and its range. false: none. Reads no name. */
bool symbol_table_lookup(const struct symbol_table *t, uint64_t vaddr, uint32_t *ret_row,
			 uint64_t *ret_start, uint64_t *ret_size);
/*
 * The name of a row: a copy, shorter than 64 KiB, valid until the next call. NULL: no memory. t is
 * not const because it remembers which of several names it chose.
 */
const char *symbol_table_name(struct symbol_table *t, uint32_t row);

/* Keeps a text that is in no file. Returns its handle; 0: no room. */
uint32_t symbol_table_keep_name(struct symbol_table *t, const char *text);
/* The text of a handle, borrowed from t. */
const char *symbol_table_kept_name(const struct symbol_table *t, uint32_t name);

/* Memory held, in bytes. */
size_t symbol_table_bytes(const struct symbol_table *t);
