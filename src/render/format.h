/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Output formats by file suffix: one table for choosing, rendering and --help. */
#include <stdbool.h>
#include <stdio.h>

struct profile;
struct render_info;

/* What a format does with values below 0, which the difference of two profiles has. */
enum format_negative {
	FORMAT_REFUSES,
	FORMAT_LEAVES_OUT, /* with a warning that names their sum */
	FORMAT_HOLDS,
};

struct format {
	const char *suffix, *name, *help;
	bool lines;	/* has source lines */
	bool all_types; /* has samples of several events; else only of the one asked for */
	enum format_negative negative;
	int (*render)(const struct profile *p, const struct render_info *info, FILE *out);
	/* Renders the difference of two profiles; NULL: not supported. */
	int (*render_diff)(const struct profile *before, const struct profile *after,
			   const struct render_info *info, FILE *out);
};

extern const struct format formats[];
extern const unsigned int n_formats;

/* The format with that name; NULL: unknown. */
const struct format *format_of_name(const char *name);
/*
 * The format of an output: the named one if not NULL, else by the path's suffix; for a difference,
 * it must support that. NULL: error (FORMAT_ERROR_MAX bytes) says what is wrong.
 */
#define FORMAT_ERROR_MAX 384
const struct format *format_choose(const char *path, const struct format *named, bool diff,
				   char *error);
/*
 * 0, or -EINVAL, logged: the format cannot hold the profile's values. Logs the values that it
 * leaves out.
 */
int format_check_values(const struct format *f, const char *path, const struct profile *p);
/* The path "-". */
bool format_is_standard_output(const char *path);
/* The i-th name, each once; NULL: no more. diff: only formats for a difference. */
const char *format_name(unsigned int i, bool diff);
/* "html, folded, pprof": for messages. Returns buf. */
const char *format_names(char *buf, unsigned long size);
/* The same for formats with samples of several events. */
const char *format_names_of_all_types(char *buf, unsigned long size);
