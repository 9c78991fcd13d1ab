/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the jitdump reader share: jitdump.c reads the file and its functions,
 * jitdump-lines.c their source lines. */
#include <string.h>
#include <sys/types.h>

#include "symbolize/code-table.h"
#include "symbolize/symbolize.h"
#include "util/cursor.h"

#define JITDUMP_MAX_NAME	8192
#define JITDUMP_MAX_LINES_BYTES (1u << 20) /* of one function */

/* From there on; behind the rows of a function are the names of its files. */
struct line_row {
	uint32_t at, line, column;
	uint32_t file; /* from the end of the rows */
};

struct jitdump_lines {
	uint64_t code_address; /* of the function they are for */
	ARRAY(struct line_row) rows;
	ARRAY(char) files;
};

struct jitdump {
	struct code_table table;
	struct jitdump_lines lines; /* of the function that comes next */
	uint64_t offset;	    /* of the next record; 0: the header comes */
	dev_t dev;
	ino_t ino;
	const char *problem;
	bool arch_clock, plain_lines;
	uint64_t n_bad;
};

/* A name, at most JITDUMP_MAX_NAME bytes of it; *ret_n 0: there is none. */
const char *jitdump_take_name(struct cursor *c, size_t *ret_n);

void jitdump_lines_init(struct jitdump_lines *l);
void jitdump_lines_deinit(struct jitdump_lines *l);
void jitdump_lines_forget(struct jitdump_lines *l);
/* The body of a JIT_CODE_DEBUG_INFO record. 0 or -ENOMEM. */
int jitdump_read_lines(struct jitdump *j, struct cursor *c);
/* They go behind the function's name: allocated, *ret_n bytes, 0 without lines. NULL: no memory. */
void *jitdump_pack_lines(const struct jitdump_lines *l, size_t *ret_n);
/* The line at that place in the function, into ret, whose name is set. */
void jitdump_find_line(const struct jitdump *j, const struct code_entry *e, uint64_t at,
		       struct symbol *ret);
