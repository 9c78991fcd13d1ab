/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of report, convert and diff: what each asks for, and why others are refused. */
#include <errno.h>

#include "src/cmd/cmd.h"
#include "src/cmd/view.h"
#include "tests/unit/test.h"
#include "tests/unit/told.h"
#include "util/clock.h"
#include "util/log.h"

enum { MAX_WORDS = 300 };

static struct view v;

/* "report -o a.html in.pb.gz" */
static int parse(const char *line)
{
	static char text[4096];
	char *argv[MAX_WORDS] = {NULL}, *save;
	int argc = 0, r;

	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	memset(&v, 0, sizeof(v));
	v.command = *argv[0] == 'r'   ? &report_command
		    : *argv[0] == 'c' ? &convert_command
				      : &diff_command;
	v.setup.view = *argv[0] == 'r' ? VIEW_REPORT : *argv[0] == 'c' ? VIEW_CONVERT : VIEW_DIFF;
	told_begin();
	r = view_parse_options(&v, argc, argv);
	told_end();
	log_set_level(LOG_LEVEL_INFO);
	CHECK_INT(strlen(told) > 0, ==, r < 0);
	return r;
}

static void parse_well(const char *line)
{
	if (parse(line) != 0)
		(void)fprintf(stderr, "%s: %s", line, told);
	CHECK_STR(told, "");
}

/* Files and options in any order. */
static void test_files(void)
{
	parse_well("convert one -o a.html two --no-lines three -o b.svg");
	CHECK_INT(v.n_inputs, ==, 3);
	CHECK_STR(v.inputs[0], "one");
	CHECK_STR(v.inputs[1], "two");
	CHECK_STR(v.inputs[2], "three");
	CHECK_INT(v.input_fds[2], <, 0);
	CHECK_INT(v.outputs.n, ==, 2);
	CHECK_STR(v.outputs.items[1].path, "b.svg");
	CHECK(v.no_lines && !v.no_inline);
	parse_well("convert --no-inline -o a.html -- -o");
	CHECK_INT(v.n_inputs, ==, 1);
	CHECK_STR(v.inputs[0], "-o");
	CHECK(v.no_inline);
	/* What ends the options ends all. */
	parse_well("convert -o a.html -- one -o two");
	CHECK_INT(v.n_inputs, ==, 3);
	CHECK_STR(v.inputs[1], "-o");
}

static void test_report(void)
{
	parse_well("report a.pb.gz --sort module,line,symbol -n 7 --percent-limit 2.5 --csv");
	CHECK_INT(v.setup.report.n_keys, ==, 3);
	CHECK_INT(v.setup.report.keys[0], ==, REPORT_MODULE);
	CHECK_INT(v.setup.report.keys[1], ==, REPORT_LINE);
	CHECK_INT(v.setup.report.keys[2], ==, REPORT_SYMBOL);
	CHECK_INT(v.setup.report.max_rows, ==, 7);
	CHECK(v.setup.report.min_percent == 2.5);
	CHECK(v.setup.report.csv);
	parse_well("report --symbol ^mal+oc$ -c nginx* --container web --callers a");
	CHECK_STR(v.symbol, "^mal+oc$");
	CHECK_STR(v.comm, "nginx*");
	CHECK_STR(v.container, "web");
	CHECK(v.setup.report.callers && !v.setup.report.callees);
	CHECK_INT(v.setup.report.max_rows, ==, 10);
	parse_well("report --callers -n 0 a");
	CHECK_INT(v.setup.report.max_rows, ==, 0);
	parse_well("report --last 2h --store /var/x --trace 0123456789abcdefABCDEF0123456789");
	CHECK_INT(v.last_ns, ==, 7200 * NSEC_PER_SEC);
	CHECK_STR(v.store, "/var/x");
	parse_well("report --children a");
	CHECK(v.setup.report.by_total && !v.setup.report.no_total);
	parse_well("report --no-children --children a");
	CHECK(v.setup.report.by_total && !v.setup.report.no_total);
	parse_well("report --children --no-children a");
	CHECK(!v.setup.report.by_total && v.setup.report.no_total);
	CHECK(!v.setup.demangle_again);
	parse_well("report --demangle none a");
	CHECK(v.setup.demangle_again);
	CHECK_INT(v.setup.demangle, ==, SYMBOL_DEMANGLE_NONE);
}

static void test_diff(void)
{
	parse_well("diff a b");
	CHECK_INT(v.n_inputs, ==, 2);
	CHECK_INT(v.setup.report.max_rows, ==, 40);
	parse_well("diff a b -n 3 -o d.html");
	CHECK_INT(v.setup.report.max_rows, ==, 3);
}

static void test_refused(void)
{
	static const char *const cases[][2] = {
		{"report", "needs a recorded file, or --last TIME"},
		{"convert -o a.html", "needs a recorded file;"},
		{"convert a", "needs an output"},
		{"diff a", "compares two files"},
		{"diff a b c", "compares two files"},
		{"diff a b -o d.svg", "-o d.svg: "},
		{"report a --last 10m", "takes files or --last, not both"},
		{"report a --store /x", "--store is the directory for --last TIME"},
		{"report a --sort comm --callers", "need the key symbol in --sort"},
		{"report a --sort comm,colour", "--sort colour: unknown key"},
		{"report a --sort comm,comm", "a key is given twice"},
		{"report a --sort ,", "names no key"},
		{"report a --symbol (", "--symbol (: "},
		{"report a --trace 12", "--trace 12: 32 hexadecimal digits"},
		{"report a --span 0123456789abcdeg", "16 hexadecimal digits"},
		{"report a --percent-limit 101", "a number from 0 to 100"},
		{"report a --percent-limit nan", "a number from 0 to 100"},
		{"report a --percent-limit 5%", "a number from 0 to 100"},
		{"report a -n -1", "expected a number of rows"},
		{"report --last 0", "expected a time such as 10m"},
		{"report --last soon", "expected a time such as 10m"},
		{"report a --demangle some", "full, simple or none"},
		{"report a --sortt comm", "did you mean --sort?"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(parse(cases[i][0]), ==, -EINVAL);
		if (!strstr(told, cases[i][1]))
			(void)fprintf(stderr, "%s: %s", cases[i][0], told);
		CHECK(strstr(told, cases[i][1]) != NULL);
	}
}

static void test_many_files(void)
{
	char line[2 * VIEW_MAX_INPUTS + 64] = "convert -o a.html";

	for (int i = 0; i < VIEW_MAX_INPUTS; i++)
		(void)strcat(line, " a");
	parse_well(line);
	CHECK_INT(v.n_inputs, ==, VIEW_MAX_INPUTS);
	(void)strcat(line, " b");
	CHECK_INT(parse(line), ==, -EINVAL);
	CHECK(strstr(told, "more than 256 files") != NULL);
}

int main(void)
{
	RUN(test_files);
	RUN(test_report);
	RUN(test_diff);
	RUN(test_refused);
	RUN(test_many_files);
	return 0;
}
