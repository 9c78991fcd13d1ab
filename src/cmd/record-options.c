/* SPDX-License-Identifier: Apache-2.0 */
/* What perfwalk record can be asked for, and what is wrong with what was asked. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "src/cmd/format.h"
#include "src/cmd/record.h"
#include "util/text.h"

#define MAX_HZ 10000

enum {
	OPT_ALL,
	OPT_PID,
	OPT_FREQ,
	OPT_DURATION,
	OPT_OUTPUT,
	OPT_STACK,
	OPT_USER_ONLY,
	OPT_NO_LINES,
	OPT_NO_INLINE,
	OPT_STRICT,
	OPT_QUIET,
	OPT_VERBOSE
};

static const struct option_spec option_table[] = {
	{'a', "all", NULL, "the whole host (the default without -p and COMMAND)", OPT_ALL},
	{'p', "pid", "PID[,PID...]", "these processes, with their threads and what they fork",
	 OPT_PID},
	{'F', "freq", "HZ", "samples a second on each CPU; default 99", OPT_FREQ},
	{'d', "duration", "TIME", "how long: 10, 10s, 2m; default until Ctrl-C, or COMMAND ends",
	 OPT_DURATION},
	{'o', "output", "FILE", "write FILE (repeatable); the suffix says what: see below",
	 OPT_OUTPUT},
	{0, "stack-size", "BYTES", "stack bytes copied a sample: 1K to 65528; default 32K",
	 OPT_STACK},
	{0, "user-only", NULL, "no kernel frames", OPT_USER_ONLY},
	{0, "no-lines", NULL, "no source files and lines", OPT_NO_LINES},
	{0, "no-inline", NULL, "no frames for inlined functions", OPT_NO_INLINE},
	{0, "strict", NULL, "exit with 5 when any sample was lost or dropped", OPT_STRICT},
	{'q', "quiet", NULL, "no progress, no summary", OPT_QUIET},
	{'v', "verbose", NULL, "say more of what is going on", OPT_VERBOSE},
};

const struct command record_command = {
	.name = "record",
	.usage = "record [-a | -p PID[,PID...] | -- COMMAND...] [-F HZ] [-d TIME] [-o FILE]...",
	.summary = "capture stacks for a while: flame graph, folded stacks, pprof, summary",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.epilog = "Outputs by suffix: .html (flame graph page), .folded (folded stacks), .pb.gz "
		  "(pprof).\n"
		  "Exit codes: 0 ok, 1 failure, 2 usage, 3 not permitted, 4 not supported here, 5 "
		  "--strict\n"
		  "and data was lost; with COMMAND its own status, or 125 when perfwalk itself "
		  "failed.\n"
		  "\nExamples:\n"
		  "  perfwalk record -a -d 10 -o out.html -o out.folded -o out.pb.gz\n"
		  "  perfwalk record -p 1234 -F 199 -d 30s -o nginx.html\n"
		  "  perfwalk record -o build.html -- make -j4\n",
};
static int complain(const char *option, const char *value, const char *expected)
{
	(void)fprintf(stderr, "perfwalk: record: %s %s: %s\n", option, value, expected);
	return -EINVAL;
}

static int parse_pids(struct record_options *o, const char *value)
{
	_cleanup_free_ char *copy = strdup(value);
	char *save = NULL;

	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		uint64_t pid;

		if (text_parse_u64(word, 1, 1u << 22, &pid) < 0)
			return complain("-p", word,
					"not a process id; give numbers, with commas between");
		if (o->n_pids == RECORD_MAX_PIDS)
			return complain("-p", value, "more than 256 processes; use -a");
		o->pids[o->n_pids++] = (pid_t)pid;
	}
	return o->n_pids > 0 ? 0 : complain("-p", value, "no process id in it");
}

static int add_output(struct record_options *o, const char *path)
{
	char suffixes[128], text[192];

	if (o->n_outputs == TREE_MAX_OUTPUTS)
		return complain("-o", path, "more than 16 outputs");
	if (!format_of_path(path)) {
		(void)snprintf(text, sizeof(text), "the suffix chooses the format: %s",
			       format_suffixes(suffixes, sizeof(suffixes)));
		return complain("-o", path, text);
	}
	o->outputs[o->n_outputs++] = path;
	return 0;
}

static int on_option(void *ctx, int id, const char *value)
{
	struct record_options *o = ctx;

	switch (id) {
	case OPT_ALL:
		o->all = true;
		return 0;
	case OPT_PID:
		return parse_pids(o, value);
	case OPT_FREQ:
		if (text_parse_u64(value, 1, MAX_HZ, &o->rate_hz) < 0)
			return complain("-F", value,
					"samples a second are a number from 1 to 10000");
		return 0;
	case OPT_DURATION:
		if (text_parse_duration_ns(value, &o->duration_ns) < 0 || o->duration_ns == 0)
			return complain("-d", value,
					"a time is a number with a unit: 500ms, 10s, 2m, 1h");
		return 0;
	case OPT_OUTPUT:
		return add_output(o, value);
	case OPT_STACK:
		if (text_parse_bytes(value, &o->stack_bytes) < 0 || o->stack_bytes < 1024 ||
		    o->stack_bytes > 65528)
			return complain("--stack-size", value, "bytes from 1K to 65528");
		return 0;
	case OPT_USER_ONLY:
		o->user_only = true;
		return 0;
	case OPT_NO_LINES:
		o->no_lines = true;
		return 0;
	case OPT_NO_INLINE:
		o->no_inline = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	default:
		o->verbose = true;
		return 0;
	}
}
static int check_options(const struct record_options *o, bool command)
{
	if ((int)o->all + (o->n_pids > 0) + command > 1) {
		(void)fputs("perfwalk: record: -a, -p and COMMAND exclude each other: choose one\n",
			    stderr);
		return -EINVAL;
	}
	if (o->n_outputs == 0 && o->quiet) {
		(void)fputs("perfwalk: record: --quiet without -o gives no result; add -o FILE\n",
			    stderr);
		return -EINVAL;
	}
	return 0;
}

int record_options_parse(struct record_options *o, int argc, char **argv, int *ret_first)
{
	int r = options_parse(&record_command, argc, argv, on_option, o, ret_first);

	return r != 0 ? r : check_options(o, *ret_first < argc);
}
