/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables of text for people, within the columns of a terminal, or tab-separated values for programs
 * (without headings, facts and notes; the names of the columns are the first line).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/confidence.h"

struct profile;
struct render_info;

#define TABLE_MAX_COLUMNS 8

struct table {
	FILE *out;
	unsigned int width;
	bool color, csv;
	bool unlimited; /* no terminal: do not cut lines */
	const char *columns[TABLE_MAX_COLUMNS];
	int widest[TABLE_MAX_COLUMNS]; /* widest cell so far, in terminal columns */
	unsigned int n_columns, at;
	bool totals;
	bool intervals, known; /* there are columns for them; their bounds are known */
	int room;	       /* columns left in the current line */
};

/* A share in per cent, and its 95% interval. */
struct table_estimate {
	double share, low, high;
};

/* width: columns of the terminal, 0: none. */
void table_init(struct table *t, FILE *out, unsigned int width, bool color, bool csv);
/* Prints what was measured, and how reliable it is. */
void table_facts(struct table *t, const struct profile *p, const struct render_info *info);
/* Adds 95% intervals to the shares from now on, if known: prints their basis, or why there are
 * none. whole: of all samples. */
void table_intervals(struct table *t, const struct profile *p, bool known, struct weight whole);
/* Print a heading, and a note below it; not in tab-separated values. */
void table_heading(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_note(struct table *t, const char *text);

/* Call table_column() for each title, then measure every cell (at: column, from 0), then print the
 * head, then rows. totals: with a total besides self. */
void table_column(struct table *t, const char *title);
void table_measure(struct table *t, const char *text, size_t n);
void table_head(struct table *t, bool totals);
void table_begin(struct table *t, struct table_estimate self, struct table_estimate total,
		 int64_t value);
/* Prints n bytes of clean UTF-8; the last column gets the rest of the line. */
void table_cell(struct table *t, const char *text, size_t n);
void table_end(struct table *t);
/* Makes the following text grey, or normal again. */
void table_dim(struct table *t, bool dim);
/* Prints a line for the n_rows rows that are not shown; self: their share in percent. */
void table_rest(struct table *t, uint32_t n_rows, double self);
/* Prints a line of a tree. same: the percentage equals that of the line before and is left out. */
void table_tree_line(struct table *t, struct table_estimate e, uint32_t depth, bool same,
		     const char *text, size_t n);

/* Prints n bytes of UTF-8 in width columns, with every character one column wide: cut with an
 * ellipsis, or (pad) padded. */
void table_put_fit(FILE *out, const char *text, size_t n, int width, bool pad);
/* Percent; 0 if whole is 0. */
double table_share(double part, double whole);
struct table_estimate table_estimate(struct weight part, struct weight whole);
