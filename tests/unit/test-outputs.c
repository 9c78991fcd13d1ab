/* SPDX-License-Identifier: Apache-2.0 */
/* Which formats outputs have, what a user is told of those that cannot be, and what becomes of the
 * files. */
#include <errno.h>
#include <sys/stat.h>

#include "src/cmd/outputs.h"
#include "src/render/format.h"
#include "tests/unit/test.h"
#include "tests/unit/told.h"

static const struct command command = {.name = "test"};
static struct outputs o;
static char directory[] = "/tmp/perfwalk-test.XXXXXX";

static int choose(const char *const *paths, const char *format, bool diff)
{
	int r = 0;

	memset(&o, 0, sizeof(o));
	told_begin();
	if (format)
		r = outputs_set_format(&o, &command, format);
	for (; r == 0 && *paths; paths++)
		r = outputs_add(&o, &command, *paths);
	if (r == 0)
		r = outputs_choose_formats(&o, &command, diff);
	told_end();
	CHECK_INT(strlen(told) > 0, ==, r < 0);
	return r;
}

/* Every format by its suffix and by its name, whatever the path. */
static void test_formats(void)
{
	for (unsigned int i = 0; i < n_formats; i++) {
		char path[64];
		const char *const paths[] = {path, NULL}, *const other[] = {"a.unknown", NULL};

		(void)snprintf(path, sizeof(path), "dir.svg/file%s", formats[i].suffix);
		CHECK_INT(choose(paths, NULL, false), ==, 0);
		CHECK_STR(outputs_format(&o, 0)->name, formats[i].name);
		CHECK_STR(o.items[0].format, formats[i].name);
		CHECK_INT(o.items[0].lines, ==, formats[i].lines);
		CHECK_INT(choose(other, formats[i].name, false), ==, 0);
		CHECK_STR(outputs_format(&o, 0)->name, formats[i].name);
		CHECK_INT(choose(paths, NULL, true), ==, formats[i].render_diff ? 0 : -EINVAL);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *paths[4], *format, *part;
	} cases[] = {
		{{"a.html", "b"}, NULL, "-o b: "},
		{{"a.html", "-"}, NULL, "-o -: "},
		{{"-", "-"}, "svg", "standard output can be one output only"},
		{{"a.html"}, "htm", "--format htm: unknown format; the formats are html, "},
		{{NULL}, "html", "--format html: no output is given"},
	};
	const char *many[BROKER_MAX_OUTPUTS + 2] = {NULL};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(choose(cases[i].paths, cases[i].format, false), ==, -EINVAL);
		if (!strstr(told, cases[i].part))
			CHECK_STR(told, cases[i].part);
	}
	for (int i = 0; i < BROKER_MAX_OUTPUTS; i++)
		many[i] = "a.html";
	CHECK_INT(choose(many, NULL, false), ==, 0);
	many[BROKER_MAX_OUTPUTS] = "b.html";
	CHECK_INT(choose(many, NULL, false), ==, -EINVAL);
	CHECK(strstr(told, "-o b.html: more than 16") != NULL);
}

static void test_standard_output(void)
{
	static const char *const with[] = {"a.html", "-", NULL}, *const without[] = {"a.html",
										     NULL};

	CHECK_INT(choose(with, "folded", false), ==, 0);
	CHECK(outputs_use_standard(&o));
	CHECK_INT(outputs_open(&o, 0600), ==, 0);
	CHECK(o.items[1].fd > STDERR_FILENO);
	outputs_close(&o);
	outputs_remove_unwritten(&o, 0);
	CHECK_INT(choose(without, "folded", false), ==, 0);
	CHECK(!outputs_use_standard(&o));
}

static void write_file(const char *path)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs("before", f) >= 0 && fclose(f) == 0);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : -1;
}

/* What was there stays as it was, and what was made and not filled goes. */
static void test_files(void)
{
	static const char *const paths[] = {"old.html", "new.html", "filled.html", NULL};
	struct stat st;

	write_file("old.html");
	CHECK_INT(choose(paths, NULL, false), ==, 0);
	(void)umask(0);
	CHECK_INT(outputs_open(&o, 0640), ==, 0);
	CHECK_INT(size_of("old.html"), ==, 6);
	CHECK_INT(fstat(o.items[1].fd, &st), ==, 0);
	CHECK_INT(st.st_mode & 0777, ==, 0640);
	outputs_close(&o);
	outputs_close(&o);
	outputs_remove_unwritten(&o, 1u << 2);
	CHECK_INT(size_of("old.html"), ==, 6);
	CHECK_INT(size_of("new.html"), ==, -1);
	CHECK_INT(size_of("filled.html"), ==, 0);
}

static void test_cannot_be_opened(void)
{
	static const char *const paths[] = {"first.html", "none/a.html", NULL};

	CHECK_INT(choose(paths, NULL, false), ==, 0);
	told_begin();
	CHECK_INT(outputs_open(&o, 0600), ==, -ENOENT);
	told_end();
	CHECK(strstr(told, "none/a.html cannot be written: No such file") != NULL);
	outputs_close(&o);
	outputs_remove_unwritten(&o, 0);
	CHECK_INT(size_of("first.html"), ==, -1);
}

int main(void)
{
	test_make_directory(directory);
	CHECK_INT(chdir(directory), ==, 0);
	RUN(test_formats);
	RUN(test_refused);
	RUN(test_standard_output);
	RUN(test_files);
	RUN(test_cannot_be_opened);
	return 0;
}
