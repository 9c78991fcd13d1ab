/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk completion: what shells complete, from the tables that --help is made of. */
#include <stdio.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "util/cleanup.h"
#include "util/text.h"

const struct command completion_command = {
	.name = "completion",
	.usage = "completion bash|zsh",
	.summary = "a script that completes commands and options, on standard output",
	.epilog = "make install puts both where the shells look for them.\n\n"
		  "Example:\n  source <(perfwalk completion bash)\n",
};

/* ---- bash ---- */

static void bash_options(const struct command *c)
{
	(void)printf("\t%s) options=\"", c->name);
	for (size_t i = 0; i < c->n_options; i++) {
		const struct option_spec *o = &c->options[i];

		if (o->letter)
			(void)printf("-%c ", o->letter);
		(void)printf("--%s ", o->name);
	}
	(void)printf("--help\"");
	if (c->n_words)
		(void)printf(" words=\"");
	for (size_t i = 0; i < c->n_words; i++)
		(void)printf("%s%s", i ? " " : "", c->words[i]);
	(void)printf("%s ;;\n", c->n_words ? "\"" : "");
}

static void print_bash(const struct command *const *commands, size_t n)
{
	(void)printf("# bash completion of perfwalk\n"
		     "_perfwalk()\n{\n"
		     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} options= words=\n"
		     "\tCOMPREPLY=()\n"
		     "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		     "\t\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; i < n; i++)
		(void)printf("%s ", commands[i]->name);
	(void)printf("--help --version\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
		     "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < n; i++)
		bash_options(commands[i]);
	(void)printf("\tesac\n"
		     "\tcase $cur in\n"
		     "\t-*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
		     "\t*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
		     "\tesac\n"
		     "}\n"
		     "complete -o default -F _perfwalk perfwalk\n");
}

/* ---- zsh ---- */

/* Within single quotes, and where a bracket or a colon would end the description. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text))
			(void)printf("\\%c", *text);
		else
			(void)putchar(*text);
	}
}

static void zsh_option(const struct option_spec *o)
{
	const char *more = o->argument ? ":" : "";

	if (o->letter)
		(void)printf(" \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
			     o->name);
	else
		(void)printf(" \\\n\t\t\t'--%s[", o->name);
	zsh_text(o->help);
	(void)printf("]%s", more);
	if (o->argument)
		zsh_text(o->argument);
	(void)printf("%s'", o->argument ? ":_files" : "");
}

/* What stands behind the options. */
static void zsh_words(const struct command *c)
{
	(void)printf(c->n_words ? "'1:command:(" : "'*:file:_files");
	for (size_t i = 0; i < c->n_words; i++)
		(void)printf("%s%s", i ? " " : "", c->words[i]);
	(void)printf(c->n_words ? ")'" : "'");
}

static void print_zsh(const struct command *const *commands, size_t n)
{
	(void)printf("#compdef perfwalk\n"
		     "_perfwalk()\n{\n"
		     "\tlocal -a commands=(");
	for (size_t i = 0; i < n; i++) {
		(void)printf("\n\t\t'%s:", commands[i]->name);
		zsh_text(commands[i]->summary);
		(void)printf("'");
	}
	(void)printf(")\n"
		     "\tif (( CURRENT == 2 )); then\n"
		     "\t\t_describe command commands\n"
		     "\t\treturn\n"
		     "\tfi\n"
		     "\tcase $words[2] in\n");
	for (size_t i = 0; i < n; i++) {
		(void)printf("\t%s)\n\t\t_arguments", commands[i]->name);
		for (size_t k = 0; k < commands[i]->n_options; k++)
			zsh_option(&commands[i]->options[k]);
		(void)printf(" \\\n\t\t\t'--help[this text]' ");
		zsh_words(commands[i]);
		(void)printf(" ;;\n");
	}
	(void)printf("\tesac\n}\n"
		     "[ \"$funcstack[1]\" = _perfwalk ] && _perfwalk \"$@\" || compdef _perfwalk "
		     "perfwalk\n");
}

static int on_option(void *ctx, int id, const char *value)
{
	return 0;
}

int completion_main(int argc, char **argv)
{
	static const char *const shells[] = {"bash", "zsh"};
	static void (*const print[])(const struct command *const *commands, size_t n) = {print_bash,
											 print_zsh};
	int first, r = options_parse(&completion_command, argc, argv, on_option, NULL, &first);
	const struct command *const *commands;
	size_t n;

	if (r > 0)
		return EXIT_CODE_OK;
	if (r == 0)
		r = options_choose(&completion_command, "shell", shells, ARRAY_SIZE(shells),
				   argv[first]);
	if (r < 0 || options_end(&completion_command, argc, argv, first + 1) < 0)
		return EXIT_CODE_USAGE;
	commands = command_list(&n);
	print[r](commands, n);
	return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
