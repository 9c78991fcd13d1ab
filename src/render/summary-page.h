/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The page that the summary of a capture is written on: its width, its styles, its kinds of lines.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/profile/profile.h"

struct calltree;

/* Everything is borrowed. */
struct summary_page {
	FILE *out;
	const struct profile *p;
	const struct calltree *t;	       /* of the first type of p */
	uint64_t counters[PROFILE_N_COUNTERS]; /* of all types */
	int64_t total;			       /* of t */
	int width;
	int color;
};

enum summary_style { SUMMARY_PLAIN, SUMMARY_BOLD, SUMMARY_DIM, SUMMARY_WARN };

/* The codes that begin and end a style; "" without colours. */
const char *summary_on(const struct summary_page *pg, enum summary_style s);
const char *summary_off(const struct summary_page *pg, enum summary_style s);

/* "1,234,567". Returns buf. */
const char *summary_format_count(char buf[32], uint64_t n);
/* Prints text in width columns: cut, or padded if pad. */
void summary_put_fit(const struct summary_page *pg, const char *text, int width, bool pad);
/* Prints an empty line and the titles of a table's columns. */
void summary_put_heading(const struct summary_page *pg, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints a line " name value why". */
void summary_put_fact(const struct summary_page *pg, const char *name, const char *value,
		      const char *why);
/* Prints "and 12 more" below a table that shows max of its n rows; nothing if it shows all. */
void summary_put_more(const struct summary_page *pg, uint32_t n, uint32_t max);
