/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines come in a record before that of their function and are stored with its name. Their
 * addresses are those of the code; but V8 adds the size of the ELF header that perf inject would
 * put before the code. Nothing in the file says who wrote it. So we assume V8 as long as no
 * function has had a line in its first 64 bytes.
 */
#include <errno.h>
#include <stdlib.h>

#include "symbolize/jitdump-internal.h"

#define MAX_LINES 65536 /* of one function */
#define V8_SHIFT  64

void jitdump_lines_init(struct jitdump_lines *l)
{
	l->rows.max = MAX_LINES;
	l->files.max = JITDUMP_MAX_LINES_BYTES;
}

void jitdump_lines_deinit(struct jitdump_lines *l)
{
	array_deinit(&l->rows);
	array_deinit(&l->files);
}

void jitdump_lines_forget(struct jitdump_lines *l)
{
	array_clear(&l->rows);
	array_clear(&l->files);
}

/* 0 and its offset among the files; 1: no room; -ENOMEM. */
static int put_file(struct jitdump_lines *l, const char *name, size_t n, uint32_t *ret)
{
	uint32_t begin = l->files.n;

	for (size_t i = 0; i <= n; i++) {
		char *p = array_push(&l->files);

		if (!p) {
			int r = l->files.n == l->files.max ? 1 : -ENOMEM;

			l->files.n = begin;
			return r;
		}
		*p = i < n ? name[i] : 0;
	}
	*ret = begin;
	return 0;
}

/* 0; 1: this line and those after it are unusable; -ENOMEM. */
static int read_line(struct jitdump_lines *l, struct cursor *c)
{
	const struct line_row *last = l->rows.n ? &l->rows.items[l->rows.n - 1] : NULL;
	struct line_row line = {.file = last ? last->file : 0}, *row;
	uint64_t at = cursor_u64(c) - l->code_address;
	const char *name;
	size_t n;
	int r;

	line.line = cursor_u32(c);
	line.column = cursor_u32(c);
	name = jitdump_take_name(c, &n);
	if (!cursor_ok(c) || n == 0 || at > CODE_MAX_RANGE || line.line == 0)
		return 1;
	line.at = (uint32_t)at;
	/* A lone 0xff means the file of the line before. */
	if (!last ||
	    (strcmp(name, "\xff") != 0 && strcmp(l->files.items + last->file, name) != 0)) {
		r = put_file(l, name, n, &line.file);
		if (r != 0)
			return r;
	}
	row = array_push(&l->rows);
	if (!row)
		return l->rows.n == l->rows.max ? 1 : -ENOMEM;
	*row = line;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

int jitdump_read_lines(struct jitdump *j, struct cursor *c)
{
	struct jitdump_lines *l = &j->lines;
	uint64_t n;
	int r = 0;

	jitdump_lines_forget(l);
	l->code_address = cursor_u64(c);
	n = cursor_u64(c);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = read_line(l, c);
	if (r < 0)
		return r;
	j->n_bad += r > 0;
	if (l->rows.n)
		qsort(l->rows.items, l->rows.n, sizeof(*l->rows.items), compare_rows);
	j->plain_lines |= l->rows.n > 0 && l->rows.items[0].at < V8_SHIFT;
	return 0;
}

/* The format: the number of rows, the rows, the files. */
void *jitdump_pack_lines(const struct jitdump_lines *l, size_t *ret_n)
{
	size_t n_rows = l->rows.n * sizeof(*l->rows.items);
	size_t n = sizeof(uint32_t) + n_rows + l->files.n;
	uint8_t *more = malloc(n);

	if (!more)
		return NULL;
	memcpy(more, &l->rows.n, sizeof(uint32_t));
	if (n_rows) {
		memcpy(more + sizeof(uint32_t), l->rows.items, n_rows);
		memcpy(more + sizeof(uint32_t) + n_rows, l->files.items, l->files.n);
	}
	*ret_n = n_rows ? n : 0;
	return more;
}

/* Finds the last row at or before the address. */
void jitdump_find_line(const struct jitdump *j, const struct code_entry *e, uint64_t at,
		       struct symbol *ret)
{
	const char *more = code_table_name(&j->table, e) + strlen(ret->name) + 1, *files;
	uint32_t n, low = 0, high;
	struct line_row row;

	if (e->n_more == 0)
		return;
	memcpy(&n, more, sizeof(n));
	more += sizeof(n);
	files = more + n * sizeof(row);
	at += j->plain_lines ? 0 : V8_SHIFT;
	for (high = n; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&row, more + middle * sizeof(row), sizeof(row));
		if (row.at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return;
	memcpy(&row, more + (low - 1) * sizeof(row), sizeof(row));
	ret->file = files + row.file;
	ret->line = row.line;
	ret->column = row.column;
}
