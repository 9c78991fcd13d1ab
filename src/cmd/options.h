/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command lines from one table: parsing by getopt_long, --help, and what the man page is checked
 * by. */
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
	int id; /* 0 on: given to the callback; or one of those below, which need none */
};

/*
 * Ids of options that are only noted down, in the struct of that type that options_parse() has as
 * ctx: an option without an argument sets a bool, one with an argument a text, which is argv's.
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
	const char *const *words; /* one of which comes behind the options; NULL: none */
	size_t n_words;
	/* The i-th of the words that the value of an option may be; NULL: there are no more. NULL:
	 * none of its options has such words. */
	const char *(*value)(int id, unsigned int i);
};

/*
 * Calls fn for each option that has no place in ctx; it returns 0, or -errno after telling the user
 * what is wrong. NULL: all have one. Options end at "--" or the first argument. 0 and *ret_first:
 * index of what is left; 1: --help was given and answered; -EINVAL: told.
 */
int options_parse(const struct command *c, int argc, char **argv,
		  int (*fn)(void *ctx, int id, const char *value), void *ctx, int *ret_first);
/*
 * What stands behind the options is one of the command's words, which are of a kind ("shell"): its
 * index. -EINVAL: the user was told that it is missing (word NULL), or is none of them.
 */
int options_choose(const struct command *c, const char *kind, const char *word);
/*
 * Adds the ids of processes or threads in value, with commas between, to ids, of which there are *n
 * and may be OPTIONS_MAX_IDS. 0; -EINVAL: the user was told what is wrong.
 */
int options_parse_ids(const struct command *c, const char *option, const char *value, pid_t *ids,
		      size_t *n);
/* Nothing may stand at argv[at]. 0; -EINVAL: the user was told what does. */
int options_end(const struct command *c, int argc, char **argv, int at);
/* Tells the user that an option cannot have this value, and what it can have. -EINVAL. */
int options_complain(const struct command *c, const char *option, const char *value,
		     const char *expected);
/* Tells the user what else is wrong with a command line, by a format of printf. -EINVAL. */
int options_refuse(const struct command *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void options_help(const struct command *c, FILE *out);
