/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Output formats by file suffix: one table for choosing, rendering and --help. */
#include <stdbool.h>
#include <stdio.h>

struct profile;
struct render_info;

/* What a format does with values below 0, as the difference of two profiles has them. */
enum format_negative {
	FORMAT_REFUSES,
	FORMAT_LEAVES_OUT, /* with a warning that names their sum */
	FORMAT_HOLDS,
};

struct format {
	const char *suffix, *name, *help;
	bool lines;	/* holds source lines */
	bool all_types; /* holds samples of several events; else of the first alone */
	enum format_negative negative;
	int (*render)(const struct profile *p, const struct render_info *info, FILE *out);
	/* The difference of two profiles; NULL: the format has none. */
	int (*render_diff)(const struct profile *before, const struct profile *after,
			   const struct render_info *info, FILE *out);
};

extern const struct format formats[];
extern const unsigned int n_formats;

/* The format that a path's suffix asks for, NULL: none does. */
const struct format *format_of_path(const char *path);
/* The format of that name, NULL: none has it. */
const struct format *format_of_name(const char *name);
/*
 * The format of an output: the named one if not NULL, else by the path's suffix; of a difference,
 * one that holds it. NULL: error (FORMAT_ERROR_MAX bytes) says what is wrong.
 */
#define FORMAT_ERROR_MAX 384
const struct format *format_choose(const char *path, const struct format *named, bool diff,
				   char *error);
/* 0, or -EINVAL, logged: the format cannot hold the profile's values. Logs what it leaves out. */
int format_check_values(const struct format *f, const char *path, const struct profile *p);
/* The path "-". */
bool format_is_standard_output(const char *path);
/* The i-th name, each once; NULL: there are no more. diff: of those that hold a difference. */
const char *format_name(unsigned int i, bool diff);
/* ".html, .folded, .pb.gz": for messages; diff: of those that hold a difference. Returns buf. */
const char *format_suffixes(char *buf, unsigned long size, bool diff);
/* "html, folded, pprof": for messages. Returns buf. */
const char *format_names(char *buf, unsigned long size);
/* The same of those that hold samples of several events. */
const char *format_names_of_all_types(char *buf, unsigned long size);
