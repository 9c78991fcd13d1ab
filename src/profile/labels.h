/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Labels of a pprof's samples that mean nothing to us, as one text of a thread's row: they go from
 * one pprof to the next, and tell samples apart.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct label {
	const char *key, *text; /* text NULL: it is a number */
	const char *unit;	/* of the number, or "" */
	int64_t number;
};

/* Appends a label; what would end a field or a label is written as a blank. */
void label_write(FILE *out, const struct label *l);
/*
 * Takes the next label off *text; false: there is none. The texts of ret lie in buf, size bytes,
 * which must not be shorter than *text is at first.
 */
bool label_read(const char **text, struct label *ret, char *buf, size_t size);
