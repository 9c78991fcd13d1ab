/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/options.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_OPTIONS 64
#define MAX_ID	    (1u << 22) /* the kernel's own limit */
#define LONG_ONLY   1000       /* getopt's value of options without a letter */
#define HELP_VALUE  999

int options_refuse(const struct command *c, const char *format, ...)
{
	va_list args;

	(void)fprintf(stderr, "perfwalk: %s: ", c->name);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	return -EINVAL;
}

int options_complain(const struct command *c, const char *option, const char *value,
		     const char *expected)
{
	return options_refuse(c, "%s %s: %s", option, value, expected);
}

void options_help(const struct command *c, FILE *out)
{
	(void)fprintf(out, "Usage: perfwalk %s\n\n%s\n", c->usage, c->summary);
	if (c->n_options > 0)
		(void)fputs("\nOptions:\n", out);
	for (size_t i = 0; i < c->n_options; i++) {
		const struct option_spec *o = &c->options[i];
		char left[64];

		(void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
			       o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
			       o->argument ? " " : "", o->argument ? o->argument : "");
		(void)fprintf(out, "  %-28s %s\n", left, o->help);
	}
	if (c->n_options > 0)
		(void)fprintf(out, "  %-28s %s\n", "-h,  --help", "this text");
	if (c->epilog)
		(void)fprintf(out, "\n%s", c->epilog);
}

static int report_unknown(const struct command *c, const char *word)
{
	const char *names[MAX_OPTIONS], *near = NULL;
	size_t n = 0;

	for (; n < c->n_options && n < MAX_OPTIONS; n++)
		names[n] = c->options[n].name;
	if (strncmp(word, "--", 2) == 0)
		near = text_nearest(word + 2, names, n);
	return options_refuse(c, "unknown option %s%s%s%s; see perfwalk %s --help", word,
			      near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "",
			      c->name);
}

static int take(const struct option_spec *o, const char *value,
		int (*fn)(void *ctx, int id, const char *value), void *ctx)
{
	char *place;

	if (o->id >= 0)
		return fn(ctx, o->id, value);
	place = (char *)ctx + (-1 - o->id);
	if (o->argument)
		*(const char **)place = value;
	else
		*(bool *)place = true;
	return 0;
}

int options_parse(const struct command *c, int argc, char **argv,
		  int (*fn)(void *ctx, int id, const char *value), void *ctx, int *ret_first)
{
	struct option longs[MAX_OPTIONS + 2];
	char shorts[2 * MAX_OPTIONS + 8] = "+:h";
	size_t n = 0, at = strlen(shorts);

	for (; n < c->n_options && n < MAX_OPTIONS; n++) {
		const struct option_spec *o = &c->options[n];

		longs[n] = (struct option){o->name, o->argument ? required_argument : no_argument,
					   NULL, o->letter ? o->letter : LONG_ONLY + (int)n};
		if (!o->letter)
			continue;
		shorts[at++] = o->letter;
		if (o->argument)
			shorts[at++] = ':';
	}
	shorts[at] = '\0';
	longs[n] = (struct option){"help", no_argument, NULL, HELP_VALUE};
	longs[n + 1] = (struct option){NULL, 0, NULL, 0};

	optind = 1;
	opterr = 0;
	for (;;) {
		int before = optind, v = getopt_long(argc, argv, shorts, longs, NULL), r;

		if (v == -1)
			break;
		if (v == 'h' || v == HELP_VALUE) {
			options_help(c, stdout);
			return 1;
		}
		if (v == ':')
			return options_refuse(c, "%s needs a value; see perfwalk %s --help",
					      argv[optind - 1], c->name);
		if (v == '?') {
			char letter[3] = {'-', (char)optopt, '\0'};

			return report_unknown(c,
					      optopt && optopt < LONG_ONLY ? letter : argv[before]);
		}
		for (size_t i = 0; i < n; i++) {
			if (v != longs[i].val)
				continue;
			r = take(&c->options[i], optarg, fn, ctx);
			if (r < 0)
				return r;
		}
	}
	*ret_first = optind;
	return 0;
}

static void report_missing(const struct command *c, const char *kind)
{
	(void)fprintf(stderr, "perfwalk: %s: a %s is missing: ", c->name, kind);
	for (size_t i = 0; i < c->n_words; i++)
		(void)fprintf(stderr, "%s%s",
			      i == 0		   ? ""
			      : i + 1 < c->n_words ? ", "
						   : " or ",
			      c->words[i]);
	(void)fputc('\n', stderr);
}

int options_choose(const struct command *c, const char *kind, const char *word)
{
	const char *near;

	if (!word) {
		report_missing(c, kind);
		return -EINVAL;
	}
	for (size_t i = 0; i < c->n_words; i++) {
		if (strcmp(word, c->words[i]) == 0)
			return (int)i;
	}
	near = text_nearest(word, c->words, c->n_words);
	return options_refuse(c, "unknown %s %s%s%s%s; see perfwalk %s --help", kind, word,
			      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "",
			      c->name);
}

int options_end(const struct command *c, int argc, char **argv, int at)
{
	if (at >= argc)
		return 0;
	return options_refuse(c, "unexpected argument %s; see perfwalk %s --help", argv[at],
			      c->name);
}

int options_parse_ids(const struct command *c, const char *option, const char *value, pid_t *ids,
		      size_t *n)
{
	_cleanup_free_ char *copy = strdup(value);
	char *save = NULL;

	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		uint64_t id;

		if (text_parse_u64(word, 1, MAX_ID, &id) < 0)
			return options_complain(
				c, option, word,
				"not a process or thread id; give numbers, separated by commas");
		if (*n == OPTIONS_MAX_IDS)
			return options_complain(
				c, option, value,
				"more than 256 of them; sample the whole host instead");
		ids[(*n)++] = (pid_t)id;
	}
	return *n > 0 ? 0 : options_complain(c, option, value, "no id in it");
}
