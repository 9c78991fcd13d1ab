/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command lines from one table: parsing by getopt_long(3), --help, completion, and the check of the
 * manual pages. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define OPTIONS_MAX_IDS 256

struct option_spec {
	char letter;	      /* 0: long form only */
	const char *name;     /* long name */
	const char *argument; /* placeholder, NULL: takes none */
	const char *help;
	int id; /* 0 and above: for the callback; or one of those below, which need no callback */
};

/*
 * Ids of options that only set a field of the ctx of options_parse(), a struct of that type: a bool
 * for an option without an argument, else a text, which is argv's.
 */
#define OPTION_FLAG(type, field) OPTION_PLACE(type, field, bool)
#define OPTION_TEXT(type, field) OPTION_PLACE(type, field, const char *)
#define OPTION_PLACE(type, field, kind)                                                            \
	(-1 - (int)offsetof(type, field) + _Generic(((type *)0)->field, kind : 0))

struct command {
	const char *name, *usage, *summary;
	const struct option_spec *options;
	size_t n_options;
	const char *epilog;	  /* after the options in --help; NULL */
	const char *const *words; /* the arguments to choose from; NULL: none */
	size_t n_words;
	/* The i-th word that an option can have as its value; NULL: there are no more. The function
	 * may be NULL: no option has such words. */
	const char *(*value)(int id, unsigned int i);
};

/*
 * Calls fn for each option without a field in ctx (fn NULL: there are none); it returns 0, or
 * -errno after it has printed an error. Options end at "--" or the first argument. 0: *ret_first is
 * the index of the first argument; 1: --help was given, and printed; -EINVAL: an error was printed.
 */
int options_parse(const struct command *c, int argc, char **argv,
		  int (*fn)(void *ctx, int id, const char *value), void *ctx, int *ret_first);
/*
 * Chooses one of the command's words. kind: what they are, such as "shell". Returns its index.
 * -EINVAL: the word is missing (NULL) or unknown; an error was printed.
 */
int options_choose(const struct command *c, const char *kind, const char *word);
/*
 * Adds the ids of processes or threads in value, separated by commas, to the *n in ids, up to
 * OPTIONS_MAX_IDS. 0; -EINVAL: an error was printed.
 */
int options_parse_ids(const struct command *c, const char *option, const char *value, pid_t *ids,
		      size_t *n);
/* Checks that there is no argument at argv[at]. 0; -EINVAL: an error was printed. */
int options_end(const struct command *c, int argc, char **argv, int at);
/* Prints that an option cannot have this value, and what it can have. -EINVAL. */
int options_complain(const struct command *c, const char *option, const char *value,
		     const char *expected);
/* Prints any other error in a command line, by a format of printf(3). -EINVAL. */
int options_refuse(const struct command *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints --help. */
void options_help(const struct command *c, FILE *out);
