/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk completion: what shells complete, from the tables that --help is made of. */
#include <stdio.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "util/cleanup.h"
#include "util/text.h"

static const char *const shells[] = {"bash", "zsh"};

const struct command completion_command = {
	.name = "completion",
	.usage = "completion bash|zsh",
	.summary = "print a script that completes commands, options and their arguments",
	.words = shells,
	.n_words = ARRAY_SIZE(shells),
	.epilog = "make install installs both scripts where the shells look for them.\n"
		  "\n"
		  "Example:\n"
		  "  source <(perfwalk completion bash)\n",
};

/* ---- bash ---- */

static const char *value_of(const struct command *c, const struct option_spec *o, unsigned int i)
{
	return c->value ? c->value(o->id, i) : NULL;
}

/* "EVENT[,EVENT...]": several values, with commas between them. */
static bool takes_list(const struct option_spec *o)
{
	return o->argument && strstr(o->argument, "[,");
}

/* The values of an option: one of its words, or the shell's own choice. */
static void bash_values(const struct command *c)
{
	for (size_t i = 0; i < c->n_options; i++) {
		const struct option_spec *o = &c->options[i];
		const char *word;

		if (!o->argument)
			continue;
		(void)printf("\t\t%.1s%.1s%.1s--%s) known=; words=\"", o->letter ? "-" : "",
			     &o->letter, o->letter ? "|" : "", o->name);
		for (unsigned int k = 0; (word = value_of(c, o, k)); k++)
			(void)printf("%s ", word);
		(void)printf("\"%s ;;\n", takes_list(o) ? " list=1" : "");
	}
}

static void bash_command(const struct command *c)
{
	(void)printf("\t%s)\n\t\tknown=\"", c->name);
	for (size_t i = 0; i < c->n_options; i++) {
		const struct option_spec *o = &c->options[i];

		if (o->letter)
			(void)printf("-%c ", o->letter);
		(void)printf("--%s ", o->name);
	}
	(void)printf("--help\"\n\t\twords=\"");
	for (size_t i = 0; i < c->n_words; i++)
		(void)printf("%s ", c->words[i]);
	(void)printf("\"\n\t\tcase $previous in\n");
	bash_values(c);
	(void)printf("\t\tesac ;;\n");
}

/*
 * To bash an equals sign is a word of its own, and a comma is not: after the last comma of a list
 * it offers the words that are not in the list yet. It offers a command's words until one is there;
 * after that, or if there are none, it offers files.
 */
static void print_bash(const struct command *const *commands, size_t n)
{
	(void)printf("# bash completion of perfwalk\n"
		     "_perfwalk()\n{\n"
		     "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous known= words= list= word "
		     "before=\n"
		     "\tCOMPREPLY=()\n"
		     "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		     "\t\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; i < n; i++)
		(void)printf("%s ", commands[i]->name);
	(void)printf("--help --version\" -- \"$current\"))\n\t\treturn\n\tfi\n"
		     "\tprevious=${COMP_WORDS[COMP_CWORD-1]}\n"
		     "\t[ \"$previous\" = = ] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
		     "\t[ \"$current\" = = ] && current=\n"
		     "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < n; i++)
		bash_command(commands[i]);
	(void)printf("\tesac\n"
		     "\tif [ -n \"$known\" ]; then\n"
		     "\t\tfor word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
		     "\t\t\tcase \" $words\" in *\" $word \"*) words= ;; esac\n"
		     "\t\tdone\n"
		     "\tfi\n"
		     "\tcase $current in\n"
		     "\t-*) words=$known ;;\n"
		     "\tesac\n"
		     "\tcase $list$current in\n"
		     "\t1*,*)\n"
		     "\t\tbefore=${current%%,*},\n"
		     "\t\tfor word in ${before//,/ }; do\n"
		     "\t\t\twords=\" $words\"\n"
		     "\t\t\twords=${words/ $word / }\n"
		     "\t\tdone ;;\n"
		     "\tesac\n"
		     "\tCOMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- "
		     "\"${current#\"$before\"}\"))\n"
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

static void zsh_option(const struct command *c, const struct option_spec *o)
{
	const char *word = o->argument ? value_of(c, o, 0) : NULL;

	if (o->letter && takes_list(o)) /* as often as one likes */
		(void)printf(" \\\n\t\t\t'*'{-%c,--%s}'[", o->letter, o->name);
	else if (o->letter)
		(void)printf(" \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
			     o->name);
	else
		(void)printf(" \\\n\t\t\t'--%s[", o->name);
	zsh_text(o->help);
	(void)printf("]");
	if (o->argument) {
		(void)printf(":");
		zsh_text(o->argument);
		(void)printf("%s", !word	   ? ":_files"
				   : takes_list(o) ? ":_sequence compadd - "
						   : ":(");
	}
	for (unsigned int i = 0; word; word = value_of(c, o, ++i))
		(void)printf("%s%s", i ? " " : "", word);
	(void)printf("%s'", o->argument && value_of(c, o, 0) && !takes_list(o) ? ")" : "");
}

static void zsh_command(const struct command *c)
{
	(void)printf("\t%s)\n\t\t_arguments", c->name);
	for (size_t i = 0; i < c->n_options; i++)
		zsh_option(c, &c->options[i]);
	if (c->n_words)
		(void)printf(" \\\n\t\t\t'1:word:(");
	for (size_t i = 0; i < c->n_words; i++)
		(void)printf("%s%s", i ? " " : "", c->words[i]);
	if (c->n_words)
		(void)printf(")'");
	(void)printf(" \\\n\t\t\t'--help[this text]' '*:file:_files' ;;\n");
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
		     "\tshift words\n"
		     "\t(( CURRENT-- ))\n"
		     "\tcase $words[1] in\n");
	for (size_t i = 0; i < n; i++)
		zsh_command(commands[i]);
	(void)printf("\tesac\n}\n"
		     "[ \"$funcstack[1]\" = _perfwalk ] && _perfwalk \"$@\" || compdef _perfwalk "
		     "perfwalk\n");
}

int completion_main(int argc, char **argv, const struct command *const *commands, size_t n)
{
	static void (*const print[])(const struct command *const *commands, size_t n) = {print_bash,
											 print_zsh};
	int first, r = options_parse(&completion_command, argc, argv, NULL, NULL, &first);

	if (r > 0)
		return EXIT_CODE_OK;
	if (r == 0)
		r = options_choose(&completion_command, "shell", argv[first]);
	if (r < 0 || options_end(&completion_command, argc, argv, first + 1) < 0)
		return EXIT_CODE_USAGE;
	print[r](commands, n);
	return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
