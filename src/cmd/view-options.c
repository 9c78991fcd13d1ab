/* SPDX-License-Identifier: Apache-2.0 */
/* The options of perfwalk convert, report and diff. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "src/cmd/view.h"
#include "src/render/format.h"
#include "src/symbolizer/setup.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define DIFF_ROWS 40
#define MAX_TREES 10

enum {
	OPT_OUTPUT,
	OPT_FORMAT,
	OPT_SORT,
	OPT_TOP,
	OPT_LIMIT,
	OPT_SYMBOL,
	OPT_TRACE,
	OPT_SPAN,
	OPT_CHILDREN,
	OPT_NO_CHILDREN,
	OPT_LAST,
	OPT_DEMANGLE,
	OPT_QUIET,
	OPT_VERBOSE
};

#define FLAG(field)	   OPTION_FLAG(struct view, field)
#define REPORT_FLAG(field) FLAG(setup.report.field)
#define TEXT(field)	   OPTION_TEXT(struct view, field)

#define OUTPUT_OPTIONS                                                                             \
	{'o', "output", "FILE", "write FILE (repeatable); the suffix chooses the format",          \
	 OPT_OUTPUT},                                                                              \
	{                                                                                          \
		0, "format", "NAME",                                                               \
			"the format, regardless of the suffix; -o - is standard output",           \
			OPT_FORMAT                                                                 \
	}
#define EVENT_OPTION                                                                               \
	{                                                                                          \
		'e', "event", "NAME", "read this event or kind of values, if a file has several",  \
			TEXT(event)                                                                \
	}
#define LIMIT_OPTION                                                                               \
	{                                                                                          \
		0, "percent-limit", "PERCENT", "leave out rows with a smaller share; default 0.1", \
			OPT_LIMIT                                                                  \
	}
#define TOP_OPTION(help)                                                                           \
	{                                                                                          \
		'n', "top", "ROWS", help, OPT_TOP                                                  \
	}
#define CSV_OPTION                                                                                 \
	{                                                                                          \
		0, "csv", NULL, "print tab-separated values, for programs", REPORT_FLAG(csv)       \
	}

#define DEMANGLE_OPTION                                                                            \
	{                                                                                          \
		0, "demangle", "STYLE",                                                            \
			"names of C++, Rust and D: full, simple or none; default: as recorded",    \
			OPT_DEMANGLE                                                               \
	}
#define NAMING_OPTIONS                                                                             \
	{0, "no-lines", NULL, "perf.data: no source files and lines", FLAG(no_lines)},             \
		{0, "no-inline", NULL, "perf.data: no frames for inlined functions",               \
		 FLAG(no_inline)},                                                                 \
		DEMANGLE_OPTION,                                                                   \
		{'q', "quiet", NULL, "print warnings and errors only", OPT_QUIET},                 \
	{                                                                                          \
		'v', "verbose", NULL, "print more messages", OPT_VERBOSE                           \
	}

static const struct option_spec convert_options[] = {OUTPUT_OPTIONS, EVENT_OPTION, NAMING_OPTIONS};
static const struct option_spec report_options[] = {
	{'s', "sort", "KEY[,KEY...]",
	 "columns: comm, container, unit, service, thread, span, module, symbol, line; default "
	 "comm,module,symbol",
	 OPT_SORT},
	{0, "by", "KEY[,KEY...]", "the same as --sort: --by span", OPT_SORT},
	{'S', "symbol", "REGEX", "only functions that match", OPT_SYMBOL},
	{'c', "comm", "GLOB", "only samples of processes with that name", TEXT(comm)},
	{0, "container", "GLOB", "only samples of containers whose id or name matches",
	 TEXT(container)},
	{0, "service", "GLOB", "only samples of services with that name", TEXT(service)},
	{0, "trace", "ID", "only samples of that trace, 32 hexadecimal digits", OPT_TRACE},
	{0, "span", "ID", "only samples of that span, 16 hexadecimal digits", OPT_SPAN},
	{0, "callers", NULL,
	 "a tree of the callers of --symbol's functions (without it: of the first rows)",
	 REPORT_FLAG(callers)},
	{0, "callees", NULL, "a tree of the functions that they call", REPORT_FLAG(callees)},
	{0, "children", NULL, "sort by total, which includes called functions, not by self",
	 OPT_CHILDREN},
	{0, "no-children", NULL, "self only, without the column of totals", OPT_NO_CHILDREN},
	{0, "confidence", NULL, "show the 95% interval of each share", REPORT_FLAG(confidence)},
	{0, "last", "TIME", "read what the daemon kept here during the last 10m, 2h, 1d ...",
	 OPT_LAST},
	{0, "store", "DIRECTORY", "the directory for --last; default: that of the daemon's config",
	 TEXT(store)},
	{0, "no-native-frames", NULL,
	 "leave out an interpreter's own functions where the program's are known",
	 FLAG(setup.hide_native)},
	LIMIT_OPTION,
	TOP_OPTION("at most this many rows, or trees; 0: all; default all rows, 10 trees"),
	CSV_OPTION,
	OUTPUT_OPTIONS,
	EVENT_OPTION,
	NAMING_OPTIONS,
};
static const struct option_spec diff_options[] = {
	LIMIT_OPTION,
	TOP_OPTION("at most this many rows; 0: all; default 40"),
	CSV_OPTION,
	DEMANGLE_OPTION,
	{'o', "output", "FILE",
	 "write FILE: .html, a page of the change; .folded, stacks with two counts", OPT_OUTPUT},
	{0, "format", "NAME", "html or folded, regardless of the suffix; -o - is standard output",
	 OPT_FORMAT},
	EVENT_OPTION,
};

#define READS                                                                                      \
	"Reads perf.data, pprof (.pb.gz, .pb), OTLP profiles (.otlp) and folded stacks (.folded, " \
	"text).\n"

static const char *value_of(int id, unsigned int i)
{
	if (id == OPT_SORT && i < REPORT_N_KEYS)
		return render_report_key_name((enum render_report_key)i);
	return id == OPT_FORMAT	    ? format_name(i, false)
	       : id == OPT_DEMANGLE ? config_demangle_name(i)
				    : NULL;
}

static const char *diff_value_of(int id, unsigned int i)
{
	return id == OPT_FORMAT ? format_name(i, true) : value_of(id, i);
}

const struct command convert_command = {
	.name = "convert",
	.usage = "convert FILE... -o FILE [-o FILE]... [--format NAME] [--event NAME]",
	.summary = "convert recorded files to other formats; several are added up",
	.options = convert_options,
	.n_options = ARRAY_SIZE(convert_options),
	.value = value_of,
	.epilog = READS
	"\nExamples:\n"
	"  perfwalk convert perf.data -o perf.html\n"
	"  perfwalk convert perf.data --format folded -o - | flamegraph.pl > perf.svg\n"
	"  perfwalk convert cpu.pb.gz -o cpu.html\n"
	"  perfwalk convert monday.folded tuesday.folded -o both.html -o both.pb.gz\n",
};
const struct command report_command = {
	.name = "report",
	.usage = "report [--sort KEYS] [--symbol REGEX] [--callers] [--callees] [-o FILE]... "
		 "FILE... | --last TIME",
	.summary = "show where the time of recorded files went, as a table or a call tree",
	.options = report_options,
	.n_options = ARRAY_SIZE(report_options),
	.value = value_of,
	.epilog = READS "\nExamples:\n"
			"  perfwalk report out.pb.gz\n"
			"  perfwalk report --sort module,symbol --comm 'nginx*' out.pb.gz\n"
			"  perfwalk report --symbol '^malloc$' --callers out.folded\n"
			"  perfwalk report --callers --top 3 out.pb.gz\n"
			"  perfwalk report --last 10m -o last.html\n",
};
const struct command diff_command = {
	.name = "diff",
	.usage = "diff [--percent-limit PERCENT] [--top ROWS] [-o FILE]... BEFORE AFTER",
	.summary = "show what grew and what shrank between two recorded files",
	.options = diff_options,
	.n_options = ARRAY_SIZE(diff_options),
	.value = diff_value_of,
	.epilog = READS "Changes are in percentage points of each file's own total; ~ marks "
			"what is within noise.\n"
			"\nExample:\n  perfwalk diff monday.pb.gz tuesday.pb.gz\n",
};

static int parse_keys(struct view *v, const char *value)
{
	struct render_report_options *o = &v->setup.report;
	_cleanup_free_ char *copy = strdup(value);
	char *save = NULL;

	o->n_keys = 0;
	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		int key = 0;

		while (key < REPORT_N_KEYS &&
		       strcmp(word, render_report_key_name((enum render_report_key)key)) != 0)
			key++;
		if (key == REPORT_N_KEYS)
			return options_complain(
				v->command, "--sort", word,
				"unknown key; the keys are comm, container, unit, service, "
				"thread, span, module, symbol, line");
		for (uint32_t i = 0; i < o->n_keys; i++)
			if (o->keys[i] == key)
				return options_complain(v->command, "--sort", value,
							"a key is given twice");
		o->keys[o->n_keys++] = (uint8_t)key;
	}
	return o->n_keys ? 0 : options_complain(v->command, "--sort", value, "names no key");
}

static int parse_percent(struct view *v, const char *value)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || *end || !(percent >= 0 && percent <= 100))
		return options_complain(v->command, "--percent-limit", value,
					"a number from 0 to 100");
	v->setup.report.min_percent = percent;
	return 0;
}

static int check_expression(const struct view *v, const char *value)
{
	char why[128];
	regex_t e;
	int r = regcomp(&e, value, REG_EXTENDED | REG_NOSUB);

	if (r == 0) {
		regfree(&e);
		return 0;
	}
	(void)regerror(r, &e, why, sizeof(why));
	return options_complain(v->command, "--symbol", value, why);
}

int view_check_id(const struct command *c, const char *option, const char *value, size_t n)
{
	return strlen(value) == n && strspn(value, "0123456789abcdefABCDEF") == n
		       ? 0
		       : options_complain(c, option, value,
					  n == 32 ? "32 hexadecimal digits"
						  : "16 hexadecimal digits");
}

static int on_option(void *ctx, int id, const char *value)
{
	struct view *v = ctx;
	struct render_report_options *o = &v->setup.report;
	uint64_t rows;

	switch (id) {
	case OPT_OUTPUT:
		return outputs_add(&v->outputs, v->command, value);
	case OPT_FORMAT:
		return outputs_set_format(&v->outputs, v->command, value);
	case OPT_SORT:
		return parse_keys(v, value);
	case OPT_TOP:
		if (text_parse_u64(value, 0, UINT32_MAX, &rows) < 0)
			return options_complain(v->command, "--top", value,
						"expected a number of rows, 0 for all");
		o->max_rows = (uint32_t)rows;
		v->has_max_rows = true;
		return 0;
	case OPT_LIMIT:
		return parse_percent(v, value);
	case OPT_SYMBOL:
		v->symbol = value;
		return check_expression(v, value);
	case OPT_TRACE:
		v->trace = value;
		return view_check_id(v->command, "--trace", value, 32);
	case OPT_SPAN:
		v->span = value;
		return view_check_id(v->command, "--span", value, 16);
	case OPT_CHILDREN:
		o->by_total = true;
		o->no_total = false;
		return 0;
	case OPT_NO_CHILDREN:
		o->no_total = true;
		o->by_total = false;
		return 0;
	case OPT_LAST:
		if (text_parse_duration_ns(value, &v->last_ns) < 0 || v->last_ns == 0)
			return options_complain(
				v->command, "--last", value,
				"expected a time such as 10m, 2h, 1d, or a number of seconds");
		return 0;
	case OPT_DEMANGLE:
		v->setup.demangle_again = true;
		if (!config_demangle_parse(value, &v->demangle))
			return options_complain(v->command, "--demangle", value,
						"full, simple or none");
		v->setup.demangle = broker_demangling(v->demangle);
		return 0;
	case OPT_QUIET:
		log_set_level(LOG_LEVEL_WARNING);
		return 0;
	default:
		log_set_level(LOG_LEVEL_DEBUG);
		return 0;
	}
}

/* Which inputs there are; NULL: as it should be. */
static const char *check_inputs(const struct view *v)
{
	if (v->setup.view == VIEW_DIFF)
		return v->n_inputs == 2 ? NULL : "compares two files: give BEFORE and AFTER";
	if (v->last_ns && v->n_inputs > 0)
		return "takes files or --last, not both";
	if (v->store && !v->last_ns)
		return "--store is the directory for --last TIME: add that";
	if (v->n_inputs > 0 || v->last_ns)
		return NULL;
	return v->setup.view == VIEW_REPORT
		       ? "needs a recorded file, or --last TIME for profiles that the daemon kept"
		       : "needs a recorded file";
}

/* What options and inputs say together. */
static int check(struct view *v)
{
	struct render_report_options *o = &v->setup.report;
	const char *wrong = check_inputs(v);
	bool by_symbol = o->n_keys == 0;

	if (!v->has_max_rows && v->setup.view == VIEW_DIFF)
		o->max_rows = DIFF_ROWS;
	else if (!v->has_max_rows && (o->callers || o->callees))
		o->max_rows = MAX_TREES;
	for (uint32_t i = 0; i < o->n_keys; i++)
		by_symbol |= o->keys[i] == REPORT_SYMBOL;
	if (!wrong && v->setup.view == VIEW_CONVERT && v->outputs.n == 0)
		wrong = "needs an output: add -o FILE";
	if (!wrong && (v->symbol || o->callers || o->callees) && !by_symbol)
		wrong = "--symbol, --callers and --callees need the key symbol in --sort";
	if (!wrong)
		return outputs_choose_formats(&v->outputs, v->command, v->setup.view == VIEW_DIFF);
	return options_refuse(v->command, "%s; see perfwalk %s --help", wrong, v->command->name);
}

static int add_input(struct view *v, const char *path)
{
	if (v->n_inputs == VIEW_MAX_INPUTS)
		return options_refuse(v->command, "more than %d files", VIEW_MAX_INPUTS);
	v->inputs[v->n_inputs] = path;
	v->input_fds[v->n_inputs++] = -EBADF;
	return 0;
}

/* Options may come after files, as in "convert in.pb.gz -o out.html"; after "--" all are files. */
int view_parse_options(struct view *v, int argc, char **argv)
{
	int first = 1, r;

	while (argc > 1) {
		bool ended;

		r = options_parse(v->command, argc, argv, on_option, v, &first);
		if (r != 0)
			return r;
		ended = strcmp(argv[first - 1], "--") == 0;
		for (int i = first; i < (ended ? argc : first + 1) && i < argc; i++) {
			r = add_input(v, argv[i]);
			if (r < 0)
				return r;
		}
		if (ended || first >= argc)
			break;
		argc -= first;
		argv += first;
	}
	return check(v);
}
