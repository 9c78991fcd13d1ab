/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of one table: generated ones, of which each part says what it does and where the
 * options end; and what the user is told of those that are wrong.
 */
#include <errno.h>

#include "src/cmd/options.h"
#include "tests/unit/test.h"
#include "tests/unit/told.h"
#include "util/cleanup.h"

enum { N_LINES = 20000, MAX_WORDS = 24, ID_NUMBER = 3, ID_REFUSED = 4 };

struct asked {
	bool all, quiet;
	const char *file;
	/* By the callback: */
	int n_calls, number;
};

static const struct option_spec options[] = {
	{'a', "all", NULL, "all of it", OPTION_FLAG(struct asked, all)},
	{0, "quiet", NULL, "no words", OPTION_FLAG(struct asked, quiet)},
	{'f', "file", "FILE", "where it goes", OPTION_TEXT(struct asked, file)},
	{'n', "number", "N", "how many", ID_NUMBER},
	{0, "refused", "X", "nothing is right", ID_REFUSED},
};
static const char *const words[] = {"bash", "zsh", "fish"};
static const struct command command = {
	.name = "test",
	.usage = "test [OPTIONS]",
	.summary = "tests",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.words = words,
	.n_words = 3,
	.epilog = "The end.\n",
};

static uint64_t seed = 3;

static uint32_t chance(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

static int on_option(void *ctx, int id, const char *value)
{
	struct asked *a = ctx;

	a->n_calls++;
	if (id == ID_REFUSED)
		return options_complain(&command, "--refused", value, "expected something else");
	CHECK_INT(id, ==, ID_NUMBER);
	a->number = atoi(value);
	return 0;
}

/* ---- Generated ---- */

/* A way to write options, and what it does. */
static const struct spelling {
	const char *word, *value; /* value: the next word, or NULL */
	bool all, quiet;
	const char *file;
	int number;
} spellings[] = {
	{"-a", NULL, .all = true},
	{"--all", NULL, .all = true},
	{"--quiet", NULL, .quiet = true},
	{"-f", "one", .file = "one"},
	{"-ftwo", NULL, .file = "two"},
	{"--file", "-a", .file = "-a"},
	{"--file=three=4", NULL, .file = "three=4"},
	{"--file=", NULL, .file = ""},
	{"-n", "5", .number = 5},
	{"-an6", NULL, .all = true, .number = 6},
	{"--number", "7", .number = 7},
	{"--num=8", NULL, .number = 8},
	{"-af", "--", .all = true, .file = "--"},
};
enum { N_SPELLINGS = sizeof(spellings) / sizeof(spellings[0]) };

static void test_generated(void)
{
	for (int round = 0; round < N_LINES; round++) {
		struct asked got = {.file = NULL}, want = {.file = NULL};
		char *argv[MAX_WORDS + 1] = {(char *)"test"};
		int argc = 1, n = (int)chance(8), first = -1, end;
		bool ended;

		for (int i = 0; i < n; i++) {
			const struct spelling *s = &spellings[chance(N_SPELLINGS)];

			argv[argc++] = (char *)s->word;
			if (s->value)
				argv[argc++] = (char *)s->value;
			want.all |= s->all;
			want.quiet |= s->quiet;
			want.file = s->file ? s->file : want.file;
			want.number = s->number ? s->number : want.number;
			want.n_calls += s->number != 0;
		}
		ended = chance(3) == 0;
		if (ended)
			argv[argc++] = (char *)"--";
		end = argc;
		/* Behind "--" it is no option, and behind a word neither. */
		if (chance(2)) {
			argv[argc++] = (char *)(ended ? "--all" : "word");
			argv[argc++] = (char *)"-a";
		}
		argv[argc] = NULL;
		CHECK_INT(options_parse(&command, argc, argv, on_option, &got, &first), ==, 0);
		CHECK_INT(first, ==, end);
		CHECK_INT(got.all, ==, want.all);
		CHECK_INT(got.quiet, ==, want.quiet);
		CHECK_INT(got.number, ==, want.number);
		CHECK_INT(got.n_calls, ==, want.n_calls);
		CHECK_INT(got.file != NULL, ==, want.file != NULL);
		if (want.file)
			CHECK_STR(got.file, want.file);
	}
}

/* ---- What the user is told ---- */

static int parse(const char *const *line)
{
	struct asked a = {.file = NULL};
	int argc = 0, first, r;

	while (line[argc])
		argc++;
	told_begin();
	r = options_parse(&command, argc, (char **)(void *)line, on_option, &a, &first);
	told_end();
	return r;
}

static void test_refused(void)
{
	static const struct {
		const char *line[4], *part;
	} cases[] = {
		{{"test", "--fille", "x"}, "unknown option --fille (did you mean --file?)"},
		{{"test", "--entirely"}, "unknown option --entirely; see perfwalk test --help"},
		{{"test", "-az"}, "unknown option -z;"},
		{{"test", "-f"}, "-f needs a value"},
		{{"test", "-a", "--number"}, "--number needs a value"},
		{{"test", "--refused", "5"}, "--refused 5: expected something else"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(parse(cases[i].line), ==, -EINVAL);
		CHECK(strncmp(told, "perfwalk: test: ", 16) == 0);
		CHECK(strchr(told, '\n') == told + strlen(told) - 1);
		if (!strstr(told, cases[i].part))
			CHECK_STR(told, cases[i].part);
	}
}

/* Every option is there once, in its place. */
static void test_help(void)
{
	char *text = NULL, *at;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	options_help(&command, f);
	CHECK_INT(fclose(f), ==, 0);
	at = text;
	for (size_t i = 0; i < command.n_options; i++) {
		char left[64];

		(void)snprintf(left, sizeof(left), "--%s", options[i].name);
		at = strstr(at, left);
		CHECK(at != NULL);
		at = strstr(at, options[i].help);
		CHECK(at != NULL);
		CHECK(strchr(at, '\n') == at + strlen(options[i].help));
	}
	CHECK(strstr(at, "--help") != NULL);
	CHECK(strstr(at, "The end.\n") != NULL);
	free(text);
}

static void test_words(void)
{
	told_begin();
	CHECK_INT(options_choose(&command, "shell", "zsh"), ==, 1);
	CHECK_INT(options_choose(&command, "shell", "fisk"), ==, -EINVAL);
	told_end();
	CHECK(strstr(told, "unknown shell fisk (did you mean fish?)") != NULL);
	told_begin();
	CHECK_INT(options_choose(&command, "shell", NULL), ==, -EINVAL);
	told_end();
	CHECK_STR(told, "perfwalk: test: a shell is missing: bash, zsh or fish\n");
}

static void test_end(void)
{
	char *argv[] = {(char *)"test", (char *)"more", NULL};

	CHECK_INT(options_end(&command, 2, argv, 2), ==, 0);
	told_begin();
	CHECK_INT(options_end(&command, 2, argv, 1), ==, -EINVAL);
	told_end();
	CHECK(strstr(told, "unexpected argument more") != NULL);
}

/* ---- Ids ---- */

/* Lists of ids against the list that they were made of; several options add up. */
static void test_ids(void)
{
	for (int round = 0; round < 300; round++) {
		static pid_t want[2 * OPTIONS_MAX_IDS], got[OPTIONS_MAX_IDS];
		static char text[2 * OPTIONS_MAX_IDS * 8];
		size_t n_want = 0, n_got = 0;
		int r = 0;

		while (r == 0 && n_want < OPTIONS_MAX_IDS + 40) {
			uint32_t n = 1 + chance(60);
			size_t at = 0;

			for (uint32_t i = 0; i < n; i++) {
				want[n_want++] = 1 + (pid_t)chance(1 << 22);
				at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d",
						       i ? "," : "", (int)want[n_want - 1]);
			}
			told_begin();
			r = options_parse_ids(&command, "-p", text, got, &n_got);
			told_end();
		}
		CHECK_INT(r, ==, -EINVAL);
		CHECK(strstr(told, "more than 256") != NULL);
		CHECK_INT(n_got, ==, OPTIONS_MAX_IDS);
		CHECK(memcmp(want, got, sizeof(got)) == 0);
	}
}

static void test_bad_ids(void)
{
	static const char *const bad[] = {"0",	 "-1", "x", "1,x",  "4194305",
					  "1 2", "",   ",", "0x10", "1.5"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pid_t ids[OPTIONS_MAX_IDS];
		size_t n = 0;

		told_begin();
		CHECK_INT(options_parse_ids(&command, "-p", bad[i], ids, &n), ==, -EINVAL);
		told_end();
		CHECK(strncmp(told, "perfwalk: test: -p ", 19) == 0);
	}
}

int main(void)
{
	RUN(test_generated);
	RUN(test_refused);
	RUN(test_help);
	RUN(test_words);
	RUN(test_end);
	RUN(test_ids);
	RUN(test_bad_ids);
	return 0;
}
