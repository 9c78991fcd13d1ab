/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the jitdump reader: jitdump.c reads the file and its functions,
 * jitdump-lines.c their source lines, jitdump-unwinding.c their unwinding information. */
#include <string.h>
#include <sys/types.h>

#include "symbolize/code-table.h"
#include "symbolize/symbolize.h"
#include "util/cursor.h"

#define JITDUMP_MAX_NAME	 8192
#define JITDUMP_MAX_LINES_BYTES	 (1u << 20)  /* of one function */
#define JITDUMP_MAX_FRAMES_BYTES (64u << 10) /* of one record */

/* The source line from an offset in the function on. The names of its files follow its rows. */
struct line_row {
	uint32_t at, line, column;
	uint32_t file; /* offset of the name, from the end of the rows */
};

struct jitdump_lines {
	uint64_t code_address; /* of the function they are for */
	ARRAY(struct line_row) rows;
	ARRAY(char) files;
};

/* An unwinding record, which holds for the functions that follow it. */
struct jitdump_frames {
	uint64_t serial;  /* of the record */
	uint64_t address; /* of the .eh_frame; 0: after the code of the one function it is for */
	uint8_t *bytes;	  /* the .eh_frame */
	size_t n;
};

struct jitdump {
	enum jitdump_use use;
	struct code_table table;
	struct jitdump_lines lines; /* of the function that comes next */
	struct jitdump_frames frames;
	uint64_t n_frames;     /* unwinding records so far */
	uint64_t offset;       /* of the next record; 0: the header comes */
	uint64_t next_time_ns; /* its time, if it was too recent; 0: unknown */
	dev_t dev;
	ino_t ino;
	const char *problem;
	bool arch_clock, plain_lines;
	uint64_t n_bad;
};

/* Takes a name, at most JITDUMP_MAX_NAME bytes of it; *ret_n 0: none. */
static inline const char *jitdump_take_name(struct cursor *c, size_t *ret_n)
{
	const char *name = (const char *)c->cur;

	*ret_n = strnlen(name, cursor_left(c));
	if (*ret_n == cursor_left(c))
		*ret_n = 0; /* no terminating 0 */
	else
		(void)cursor_take(c, *ret_n + 1);
	*ret_n = *ret_n < JITDUMP_MAX_NAME ? *ret_n : JITDUMP_MAX_NAME;
	return name;
}

void jitdump_lines_init(struct jitdump_lines *l);
void jitdump_lines_deinit(struct jitdump_lines *l);
void jitdump_lines_forget(struct jitdump_lines *l);
/* The body of a JIT_CODE_DEBUG_INFO record. 0 or -ENOMEM. */
int jitdump_read_lines(struct jitdump *j, struct cursor *c);
/*
 * Packs the lines, to be stored after the function's name. Returns *ret_n bytes (0: no lines),
 * which the caller frees; NULL: no memory.
 */
void *jitdump_pack_lines(const struct jitdump_lines *l, size_t *ret_n);
/* Sets the line at an address of the function in ret, which has its name already. */
void jitdump_find_line(const struct jitdump *j, const struct code_entry *e, uint64_t at,
		       struct symbol *ret);

/* The body of a JIT_CODE_UNWINDING_INFO record. 0 or -ENOMEM. */
int jitdump_read_frames(struct jitdump *j, struct cursor *c);
void jitdump_frames_forget(struct jitdump_frames *f);
/* Adds a function with the unwinding record that was read for it. 0 or -ENOMEM. */
int jitdump_add_frames(struct jitdump *j, uint64_t start, uint64_t size);
