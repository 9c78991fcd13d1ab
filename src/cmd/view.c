/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk convert, report and diff: recorded files to outputs and tables.
 *
 * This process opens the files; a symbolizer without privileges reads them and renders, so that a
 * file made to break its reader breaks nothing else.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/supervisor.h"
#include "src/cmd/cmd.h"
#include "src/cmd/format.h"
#include "src/cmd/setup.h"
#include "src/cmd/stored.h"
#include "src/cmd/tree.h"
#include "src/cmd/view-perf-data.h"
#include "src/config/config.h"
#include "src/import/import.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define PROFILE_BYTES	(UINT64_C(2) << 30)
#define FILE_TIMEOUT_NS (120 * NSEC_PER_SEC)
#define DEFAULT_WIDTH	100
#define DEFAULT_CONFIG	SYSCONFDIR "/perfwalk/perfwalk.conf"
#define DIFF_ROWS	40
#define STORE_MAX_BYTES (UINT64_C(1) << 30)

enum {
	OPT_OUTPUT,
	OPT_SORT,
	OPT_TOP,
	OPT_LIMIT,
	OPT_SYMBOL,
	OPT_COMM,
	OPT_CONTAINER,
	OPT_CHILDREN,
	OPT_NO_CHILDREN,
	OPT_CALLERS,
	OPT_CALLEES,
	OPT_CSV,
	OPT_LAST,
	OPT_STORE,
	OPT_NO_LINES,
	OPT_NO_INLINE,
	OPT_QUIET,
	OPT_VERBOSE
};

#define OUTPUT_OPTION                                                                              \
	{                                                                                          \
		'o', "output", "FILE", "write FILE (repeatable); the suffix says what", OPT_OUTPUT \
	}
#define LIMIT_OPTION                                                                               \
	{                                                                                          \
		0, "percent-limit", "PERCENT", "leave out rows with less; default 0.1", OPT_LIMIT  \
	}
#define TOP_OPTION                                                                                 \
	{                                                                                          \
		'n', "top", "ROWS", "at most so many rows; 0: all", OPT_TOP                        \
	}
#define CSV_OPTION                                                                                 \
	{                                                                                          \
		0, "csv", NULL, "tab-separated values, for programs", OPT_CSV                      \
	}

#define NAMING_OPTIONS                                                                             \
	{0, "no-lines", NULL, "perf.data: no source files and lines", OPT_NO_LINES},               \
		{0, "no-inline", NULL, "perf.data: no frames for inlined functions",               \
		 OPT_NO_INLINE},                                                                   \
		{'q', "quiet", NULL, "warnings and errors only", OPT_QUIET},                       \
	{                                                                                          \
		'v', "verbose", NULL, "say more of what is going on", OPT_VERBOSE                  \
	}

static const struct option_spec convert_options[] = {OUTPUT_OPTION, NAMING_OPTIONS};
static const struct option_spec report_options[] = {
	{'s', "sort", "KEY[,KEY...]",
	 "columns: comm, container, unit, thread, module, symbol, line; default comm,module,symbol",
	 OPT_SORT},
	{'S', "symbol", "REGEX", "functions that match only", OPT_SYMBOL},
	{'c', "comm", "GLOB", "samples of processes of that name only", OPT_COMM},
	{0, "container", "GLOB", "samples of containers whose id matches only", OPT_CONTAINER},
	{0, "callers", NULL,
	 "who calls the functions of --symbol (without it: the first of the table), as a tree",
	 OPT_CALLERS},
	{0, "callees", NULL, "what these functions call, as a tree", OPT_CALLEES},
	{0, "children", NULL, "sort by total: with what was called, not by self", OPT_CHILDREN},
	{0, "no-children", NULL, "self only, without the column of totals", OPT_NO_CHILDREN},
	{0, "last", "TIME", "what the daemon kept on this host of the last 10m, 2h, 1d ...",
	 OPT_LAST},
	{0, "store", "DIRECTORY", "where it is kept; default: as the daemon's config says",
	 OPT_STORE},
	LIMIT_OPTION,
	TOP_OPTION,
	CSV_OPTION,
	OUTPUT_OPTION,
	NAMING_OPTIONS,
};
static const struct option_spec diff_options[] = {
	LIMIT_OPTION,
	TOP_OPTION,
	CSV_OPTION,
	{'o', "output", "FILE",
	 "write FILE: .html, a page of the change; .folded, stacks with two counts", OPT_OUTPUT},
};

#define READS                                                                                      \
	"Reads perf.data, pprof (.pb.gz, .pb), OTLP profiles (.otlp) and folded stacks (.folded, " \
	"text).\n"

const struct command convert_command = {
	.name = "convert",
	.usage = "convert FILE... -o FILE [-o FILE]...",
	.summary = "recorded files into other formats; several are added up",
	.options = convert_options,
	.n_options = ARRAY_SIZE(convert_options),
	.epilog = READS
	"\nExamples:\n"
	"  perfwalk convert perf.data -o perf.html\n"
	"  perfwalk convert cpu.pb.gz -o cpu.html\n"
	"  perfwalk convert monday.folded tuesday.folded -o both.html -o both.pb.gz\n",
};
const struct command report_command = {
	.name = "report",
	.usage = "report [--sort KEYS] [--symbol REGEX [--callers] [--callees]] [-o FILE]... "
		 "FILE...",
	.summary = "where the time of recorded files went, as a table or a tree of calls",
	.options = report_options,
	.n_options = ARRAY_SIZE(report_options),
	.epilog = READS "\nExamples:\n"
			"  perfwalk report out.pb.gz\n"
			"  perfwalk report --sort module,symbol --comm 'nginx*' out.pb.gz\n"
			"  perfwalk report --symbol '^malloc$' --callers out.folded\n"
			"  perfwalk report --callers --top 3 out.pb.gz\n"
			"  perfwalk report --last 10m -o last.html\n",
};
const struct command diff_command = {
	.name = "diff",
	.usage = "diff [--percent-limit PERCENT] [--top ROWS] BEFORE AFTER",
	.summary = "what grew and what shrank between two recorded files",
	.options = diff_options,
	.n_options = ARRAY_SIZE(diff_options),
	.epilog = READS "Changes are in percentage points of each file's own total.\n"
			"\nExample:\n  perfwalk diff monday.pb.gz tuesday.pb.gz\n",
};

struct view {
	const struct command *command;
	struct setup_symbolizer setup;
	const char *symbol, *comm, *container, *store;
	uint64_t last_ns;
	char store_label[256];
	const char *inputs[VIEW_MAX_INPUTS];
	int input_fds[VIEW_MAX_INPUTS];
	uint32_t n_inputs;
	struct tree_output outputs[TREE_MAX_OUTPUTS];
	bool created[TREE_MAX_OUTPUTS];
	uint32_t n_outputs;
	struct loop *loop;
	struct supervisor *supervisor;
	int signal_fd;
	int result;
	bool no_lines, no_inline;
};

/* ---- Options ---- */

static int complain(const struct view *v, const char *option, const char *value,
		    const char *expected)
{
	(void)fprintf(stderr, "perfwalk: %s: %s %s: %s\n", v->command->name, option, value,
		      expected);
	return -EINVAL;
}

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
			return complain(v, "--sort", word,
					"no such key; there are comm, container, unit, thread, "
					"module, symbol, line");
		for (uint32_t i = 0; i < o->n_keys; i++)
			if (o->keys[i] == key)
				return complain(v, "--sort", value, "a key is named twice");
		o->keys[o->n_keys++] = (uint8_t)key;
	}
	return o->n_keys ? 0 : complain(v, "--sort", value, "names no key");
}

static int parse_percent(struct view *v, const char *value)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || *end || !(percent >= 0 && percent <= 100))
		return complain(v, "--percent-limit", value, "a number from 0 to 100");
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
	return complain(v, "--symbol", value, why);
}

static int add_output(struct view *v, const char *path)
{
	bool diff = v->setup.view == VIEW_DIFF;
	char suffixes[256], text[320];

	if (v->n_outputs == TREE_MAX_OUTPUTS)
		return complain(v, "-o", path, "more than 16 outputs");
	if (!format_of_path(path)) {
		(void)snprintf(text, sizeof(text), "the suffix chooses the format: %s",
			       format_suffixes(suffixes, sizeof(suffixes), diff));
		return complain(v, "-o", path, text);
	}
	if (diff && !format_of_path(path)->render_diff) {
		(void)snprintf(text, sizeof(text), "that format has no differences; these do: %s",
			       format_suffixes(suffixes, sizeof(suffixes), true));
		return complain(v, "-o", path, text);
	}
	v->outputs[v->n_outputs++] = (struct tree_output){path, -EBADF, format_of_path(path)->name};
	return 0;
}

static int on_option(void *ctx, int id, const char *value)
{
	struct view *v = ctx;
	struct render_report_options *o = &v->setup.report;
	uint64_t rows;

	switch (id) {
	case OPT_OUTPUT:
		return add_output(v, value);
	case OPT_SORT:
		return parse_keys(v, value);
	case OPT_TOP:
		if (text_parse_u64(value, 0, UINT32_MAX, &rows) < 0)
			return complain(v, "--top", value, "a number of rows, 0 for all");
		o->max_rows = (uint32_t)rows;
		return 0;
	case OPT_LIMIT:
		return parse_percent(v, value);
	case OPT_SYMBOL:
		v->symbol = value;
		return check_expression(v, value);
	case OPT_COMM:
		v->comm = value;
		return 0;
	case OPT_CONTAINER:
		v->container = value;
		return 0;
	case OPT_CHILDREN:
		o->by_total = true;
		o->no_total = false;
		return 0;
	case OPT_NO_CHILDREN:
		o->no_total = true;
		o->by_total = false;
		return 0;
	case OPT_CALLERS:
		o->callers = true;
		return 0;
	case OPT_CALLEES:
		o->callees = true;
		return 0;
	case OPT_LAST:
		if (text_parse_duration_ns(value, &v->last_ns) < 0 || v->last_ns == 0)
			return complain(v, "--last", value,
					"a time is a number with a unit: 90s, 10m, 2h, 1d");
		return 0;
	case OPT_STORE:
		v->store = value;
		return 0;
	case OPT_NO_LINES:
		v->no_lines = true;
		return 0;
	case OPT_NO_INLINE:
		v->no_inline = true;
		return 0;
	case OPT_QUIET:
		log_set_level(LOG_LEVEL_WARNING);
		return 0;
	case OPT_VERBOSE:
		log_set_level(LOG_LEVEL_DEBUG);
		return 0;
	default:
		o->csv = true;
		return 0;
	}
}

/* What options and inputs say together. */
static int check(const struct view *v)
{
	const struct render_report_options *o = &v->setup.report;
	const char *wrong = NULL;
	bool by_symbol = o->n_keys == 0;

	for (uint32_t i = 0; i < o->n_keys; i++)
		by_symbol |= o->keys[i] == REPORT_SYMBOL;
	if (v->last_ns && v->n_inputs > 0)
		wrong = "takes files or --last, not both";
	else if (v->n_inputs == 0 && !v->last_ns)
		wrong = "needs a recorded file, or --last TIME for what the daemon kept";
	else if (v->setup.view == VIEW_CONVERT && v->n_outputs == 0)
		wrong = "needs an output: add -o FILE";
	else if (v->setup.view == VIEW_DIFF && v->n_inputs != 2)
		wrong = "compares two files: give BEFORE and AFTER";
	else if ((v->symbol || o->callers || o->callees) && !by_symbol)
		wrong = "--symbol, --callers and --callees want the key symbol among those of "
			"--sort";
	if (!wrong)
		return 0;
	(void)fprintf(stderr, "perfwalk: %s: %s; see perfwalk %s --help\n", v->command->name, wrong,
		      v->command->name);
	return -EINVAL;
}

/* Options may stand behind files, as in "convert in.pb.gz -o out.html". */
static int parse(struct view *v, int argc, char **argv)
{
	int first = 1, r;

	while (argc > 1) {
		r = options_parse(v->command, argc, argv, on_option, v, &first);
		if (r != 0)
			return r;
		if (first >= argc)
			break;
		if (v->n_inputs == VIEW_MAX_INPUTS) {
			(void)fprintf(stderr, "perfwalk: %s: more than %d files\n",
				      v->command->name, VIEW_MAX_INPUTS);
			return -EINVAL;
		}
		v->inputs[v->n_inputs] = argv[first];
		v->input_fds[v->n_inputs++] = -EBADF;
		argc -= first;
		argv += first;
	}
	return check(v);
}

/* ---- Files ---- */

/* The daemon's config knows where; one that cannot be read says nothing. */
static char *find_store(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	FILE *quiet = fopen("/dev/null", "we");
	char *path = NULL;

	if (quiet && access(DEFAULT_CONFIG, R_OK) == 0 &&
	    config_load(&c, DEFAULT_CONFIG, false, quiet) == 0 && c->store_path)
		path = strdup(c->store_path);
	if (quiet)
		(void)fclose(quiet);
	return path ? path : strdup(CONFIG_DEFAULT_STORE);
}

static int open_store(struct view *v)
{
	_cleanup_free_ char *found = v->store ? NULL : find_store();
	const char *path = v->store ? v->store : found;
	uint64_t now = clock_realtime_ns();
	uint32_t n;
	int fd;

	if (!path)
		return -ENOMEM;
	fd = stored_open(path, now > v->last_ns ? now - v->last_ns : 0, STORE_MAX_BYTES, &n);
	if (fd == -ENOENT)
		log_error("nothing is kept in %s for that time; perfwalk run keeps profiles there "
			  "when "
			  "its config has no [export:NAME], or [store] enabled = yes",
			  path);
	else if (fd == -EFBIG)
		log_error("%s holds more than 1 GiB for that time: choose a shorter one", path);
	else if (fd < 0)
		log_error("%s cannot be read: %s", path, strerror(-fd));
	if (fd < 0)
		return fd;
	(void)snprintf(v->store_label, sizeof(v->store_label), "%s", path);
	v->inputs[0] = v->store_label;
	v->input_fds[0] = fd;
	v->n_inputs = 1;
	return 0;
}

static int open_inputs(struct view *v)
{
	if (v->last_ns)
		return open_store(v);
	for (uint32_t i = 0; i < v->n_inputs; i++) {
		int fd = open(v->inputs[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		struct stat st;

		if (fd < 0) {
			int e = -errno;

			log_error("%s cannot be opened: %s", v->inputs[i], strerror(-e));
			return e;
		}
		v->input_fds[i] = fd;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
			log_error("%s is not a regular file; write what it gives into one first",
				  v->inputs[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int open_outputs(struct view *v)
{
	for (uint32_t i = 0; i < v->n_outputs; i++) {
		const char *path = v->outputs[i].path;
		bool there = access(path, F_OK) == 0;
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);

		if (fd < 0) {
			int e = -errno;

			log_error("%s cannot be written: %s", path, strerror(-e));
			return e;
		}
		v->created[i] = !there;
		v->outputs[i].fd = fd;
	}
	return 0;
}

/* ---- The child ---- */

static int on_setup(void *ctx, enum peer who, int control, int status_fd)
{
	struct view *v = ctx;
	int r = setup_send(control, &v->setup, sizeof(v->setup), status_fd);

	for (uint32_t i = 0; i < v->n_inputs && r == 0; i++)
		r = setup_send_text(control, TEXT_INPUT, v->inputs[i], v->input_fds[i]);
	for (uint32_t i = 0; i < v->n_outputs && r == 0; i++) {
		const struct tree_output *o = &v->outputs[i];

		r = setup_send_text(control, TEXT_OUTPUT_FORMAT, o->format, -1);
		if (r == 0)
			r = setup_send_text(control, TEXT_OUTPUT, o->path, o->fd);
	}
	if (r == 0)
		r = setup_send_text(control, TEXT_SYMBOL, v->symbol, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_COMM, v->comm, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_CONTAINER, v->container, -1);
	if (r == 0 && v->setup.view != VIEW_CONVERT)
		r = setup_send_text(control, TEXT_SUMMARY, "standard output", STDOUT_FILENO);
	return r < 0 ? r : setup_send_start(control);
}

static void on_message(void *ctx, enum peer who, const struct message *m)
{
	struct view *v = ctx;

	if (m->type == MESSAGE_RESULT)
		v->result = m->result.code;
}

static void on_gone(void *ctx, enum peer who, bool clean)
{
	struct view *v = ctx;

	if (!clean && v->result == 0) {
		log_error("%s: the process that read it died or hung: the file is damaged in a way "
			  "that perfwalk does not survive; please report it",
			  v->n_inputs == 1 ? v->inputs[0] : "one of the files");
		v->result = -EIO;
	}
	loop_exit(v->loop, 0);
}

static void on_signal(void *ctx, int fd, uint32_t events)
{
	struct view *v = ctx;
	int number;

	while ((number = signals_next(fd)) != 0) {
		if (number == SIGCHLD) {
			supervisor_reap(v->supervisor);
		} else {
			v->result = -EINTR;
			supervisor_kill(v->supervisor, PEER_SYMBOLIZER);
		}
	}
}

static void fill_setup(struct view *v)
{
	struct setup_symbolizer *s = &v->setup;
	struct winsize w;
	bool terminal = isatty(STDOUT_FILENO);

	s->common.log_level = (uint32_t)log_get_level();
	setup_choose_user(&s->common.privileges, "perfwalk");
	s->common.privileges.max_open_files = 1024;
#ifndef WITH_SANITIZERS
	s->common.privileges.max_data = 2 * PROFILE_BYTES;
#endif
	s->symbols_bytes = UINT64_C(64) << 20;
	s->profile_bytes = PROFILE_BYTES;
	s->max_open_files = 256;
	s->capture = true;
	s->terminal_width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40
				    ? w.ws_col
				    : DEFAULT_WIDTH;
	s->color = terminal && !getenv("NO_COLOR");
	s->report.width = terminal ? s->terminal_width : 0;
	s->report.color = s->color;
}

/* By its magic, in either byte order. */
/* By its first bytes, which are compared and not parsed: they say which children it needs. */
static bool is_perf_data(int fd)
{
	char head[8];

	return pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       (memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0);
}

static bool has_perf_data(const struct view *v)
{
	for (uint32_t i = 0; i < v->n_inputs; i++) {
		if (is_perf_data(v->input_fds[i]))
			return true;
	}
	return false;
}

static int run_perf_data(const struct view *v)
{
	const struct view_perf_data perf_data = {
		.path = v->inputs[0],
		.fd = v->input_fds[0],
		.outputs = v->outputs,
		.n_outputs = v->n_outputs,
		.print = v->setup.view == VIEW_REPORT,
		.lines = !v->no_lines,
		.inlined = !v->no_inline,
		.view = &v->setup,
		.symbol = v->symbol,
		.comm = v->comm,
	};

	if (v->n_inputs > 1) {
		log_error("a perf.data file is read alone: convert each to .pb.gz first (perfwalk "
			  "convert perf.data -o one.pb.gz)");
		return -EINVAL;
	}
	return view_perf_data(&perf_data);
}

static int run(struct view *v)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	const struct supervisor_callbacks callbacks = {
		.setup = on_setup, .message = on_message, .gone = on_gone, .ctx = v};
	int r;

	if ((r = open_inputs(v)) < 0 || (r = open_outputs(v)) < 0)
		return r;
	fill_setup(v);
	if (has_perf_data(v))
		return run_perf_data(v);
	if ((r = loop_new(&v->loop)) < 0 ||
	    (r = v->signal_fd = signals_open(signals, ARRAY_SIZE(signals))) < 0 ||
	    (r = loop_add_fd(v->loop, v->signal_fd, EPOLLIN, on_signal, v)) < 0 ||
	    (r = supervisor_new(&v->supervisor, v->loop, &callbacks, FILE_TIMEOUT_NS)) < 0 ||
	    (r = supervisor_start(v->supervisor, PEER_SYMBOLIZER)) < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	supervisor_stop(v->supervisor, PEER_SYMBOLIZER);
	r = loop_run(v->loop);
	return r < 0 ? r : v->result;
}

static int view_main(const struct command *command, enum view_mode mode, int argc, char **argv)
{
	struct view v = {.command = command, .signal_fd = -EBADF};
	int r;

	v.setup.view = mode;
	v.setup.report = (struct render_report_options){
		.min_percent = 0.1,
		.max_rows = mode == VIEW_DIFF ? DIFF_ROWS : 0,
	};
	r = parse(&v, argc, argv);
	if (r != 0)
		return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	r = run(&v);
	supervisor_free(v.supervisor);
	loop_free(v.loop);
	(void)close_fd(v.signal_fd);
	for (uint32_t i = 0; i < v.n_inputs; i++)
		(void)close_fd(v.input_fds[i]);
	for (uint32_t i = 0; i < v.n_outputs; i++) {
		(void)close_fd(v.outputs[i].fd);
		/* What was made and could not be filled is not left behind. */
		if (r < 0 && v.created[i])
			(void)unlink(v.outputs[i].path);
	}
	return r < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

int convert_main(int argc, char **argv)
{
	return view_main(&convert_command, VIEW_CONVERT, argc, argv);
}

int report_main(int argc, char **argv)
{
	return view_main(&report_command, VIEW_REPORT, argc, argv);
}

int diff_main(int argc, char **argv)
{
	return view_main(&diff_command, VIEW_DIFF, argc, argv);
}
