/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "util/cleanup.h"
#include "util/runtime-files.h"
#include "util/runtime-rows.h"

#define MAX_NAMES 4
#define DIGITS	  "0123456789"
#define VERSION	  DIGITS "."
#define LETTERS	  "abcdefghijklmnopqrstuvwxyz"

static const struct runtime_file {
	const char *name; /* of its language */
	enum runtime_use use;
	int library_rank;
	const char *libraries[MAX_NAMES], *programs[MAX_NAMES];
	const char *servers[MAX_NAMES]; /* they load such a library by themselves */
	const char *symbols[RUNTIME_MAX_SYMBOLS];
	const char *section; /* which no other file has, and which strip(1) keeps; NULL: none */
} rows[] = {
#define ROW(kind, type, ...) {__VA_ARGS__},
	RUNTIME_ROWS(ROW)
#undef ROW
};

static size_t count(const char *text, size_t n, const char *set)
{
	size_t i = 0;

	while (i < n && memchr(set, text[i], strlen(set)))
		i++;
	return i;
}

/* Each level is one character of the pattern further. */
static bool matches(const char *pattern, const char *text, size_t n)
{
	const char *set = *pattern == '#' ? DIGITS : *pattern == '%' ? VERSION : LETTERS;

	switch (*pattern) {
	case '\0':
		return n == 0;
	case '*':
		return true;
	case '#':
	case '%':
	case '@':
		for (size_t k = count(text, n, set) + 1; k-- > (*pattern == '#');) {
			if (matches(pattern + 1, text + k, n - k))
				return true;
		}
		return false;
	default:
		return n > 0 && *text == *pattern && matches(pattern + 1, text + 1, n - 1);
	}
}

static bool matches_any(const char *const patterns[MAX_NAMES], const char *text, size_t n)
{
	for (size_t i = 0; i < MAX_NAMES && patterns[i]; i++) {
		if (matches(patterns[i], text, n))
			return true;
	}
	return false;
}

/* The last part of a path; NULL: there is no slash. */
static const char *name_of(const char *path, size_t n, size_t *ret_n)
{
	static const char deleted[] = " (deleted)";
	size_t n_deleted = sizeof(deleted) - 1;
	const char *slash = memrchr(path, '/', n);

	if (!slash)
		return NULL;
	n -= (size_t)(slash + 1 - path);
	if (n > n_deleted && memcmp(slash + 1 + n - n_deleted, deleted, n_deleted) == 0)
		n -= n_deleted;
	*ret_n = n;
	return slash + 1;
}

/* *ret_rank: as of runtime_file_rank(). NULL: it is none. */
static const struct runtime_file *find_row(const char *path, size_t n, enum runtime_use use,
					   int *ret_rank)
{
	size_t n_name;
	const char *name = name_of(path, n, &n_name);

	for (size_t i = 0; name && i < ARRAY_SIZE(rows); i++) {
		if (!(rows[i].use & use))
			continue;
		*ret_rank = matches_any(rows[i].libraries, name, n_name) ? rows[i].library_rank : 1;
		if (*ret_rank > 1 || matches_any(rows[i].programs, name, n_name))
			return &rows[i];
	}
	*ret_rank = 0;
	return NULL;
}

int runtime_file_rank(const char *path, size_t n, enum runtime_use use)
{
	int rank;

	(void)find_row(path, n, use, &rank);
	return rank;
}

bool runtime_files_are_alike(const char *a, const char *b, enum runtime_use use)
{
	int rank;
	const struct runtime_file *row = find_row(a, strlen(a), use, &rank);

	return row && row == find_row(b, strlen(b), use, &rank);
}

const char *const *runtime_file_symbols(size_t i, enum runtime_use *ret_use)
{
	if (i >= ARRAY_SIZE(rows))
		return NULL;
	*ret_use = rows[i].use;
	return rows[i].symbols;
}

/* As people write patterns. */
static void print_names(const char *const patterns[MAX_NAMES], FILE *out)
{
	for (size_t i = 0; i < MAX_NAMES && patterns[i]; i++) {
		(void)fputs(i ? ", " : "", out);
		for (const char *c = patterns[i]; *c; c++)
			(void)fputs(*c == '#'	? "N"
				    : *c == '%' ? "*"
				    : *c == '@' ? ""
						: (char[]){*c, 0},
				    out);
	}
}

void runtime_files_print(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)fprintf(out, "%s%s (", i ? "; " : "", rows[i].name);
		print_names(rows[i].libraries, out);
		(void)fputs(rows[i].programs[0] ? ", " : "", out);
		print_names(rows[i].programs, out);
		(void)fputc(')', out);
	}
}

bool runtime_file_is_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].section && strcmp(rows[i].section, name) == 0)
			return true;
	}
	return false;
}

bool runtime_file_may_chain(const char *path)
{
	size_t n_name;
	const char *name = name_of(path, strlen(path), &n_name);

	for (size_t i = 0; name && i < ARRAY_SIZE(rows); i++) {
		if ((rows[i].use & RUNTIME_CHAINS) &&
		    (matches_any(rows[i].programs, name, n_name) ||
		     matches_any(rows[i].servers, name, n_name)))
			return true;
	}
	return false;
}
