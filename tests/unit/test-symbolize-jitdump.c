/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump files, made record by record; hostile ones; what a file means at a time. */
#include <stdbool.h>

#include "tests/unit/jitdump-file.h"
#include "util/clock.h"

static const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;

static struct jitdump *load(struct dump *d)
{
	struct jitdump *j = NULL;

	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	CHECK_INT(update(j, d, d->n, ALL), ==, 0);
	return j;
}

static void check_name(struct jitdump *j, uint64_t address, const char *want)
{
	struct symbol s = {.name = "(none)"};

	(void)jitdump_lookup(j, address, &s);
	CHECK_STR(s.name, want);
}

static void check_line(struct jitdump *j, uint64_t address, const char *file, uint32_t line,
		       uint32_t column)
{
	struct symbol s = {0};

	CHECK_INT(jitdump_lookup(j, address, &s), ==, 0);
	CHECK_STR(s.file ? s.file : "", file);
	CHECK_INT(s.line, ==, line);
	CHECK_INT(s.column, ==, column);
}

static void test_loads(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;
	struct symbol s;

	put_load(d, 10, 0x1000, 0x100, "first");
	begin(d, 4, 10); /* unwinding information */
	put(d, d->bytes, 99);
	finish(d);
	begin(d, 77, 10); /* of a later version */
	put(d, d->bytes, 5);
	finish(d);
	put_load(d, 11, 0x1100, 0x100, "second");
	put_load(d, 12, 0x1180, 0x10, "newer");
	put_load(d, 12, 0x9000, 0, "empty");
	begin(d, 3, 13);
	finish(d);
	j = load(d);
	check_name(j, 0xfff, "(none)");
	check_name(j, 0x1000, "first");
	check_name(j, 0x10ff, "first");
	check_name(j, 0x117f, "second");
	check_name(j, 0x1180, "newer");
	check_name(j, 0x1190, "second");
	check_name(j, 0x9000, "(none)");
	CHECK_INT(jitdump_lookup(j, 0x1190, &s), ==, 0);
	CHECK_INT(s.start, ==, 0x1100);
	CHECK_INT(s.size, ==, 0x100);
	CHECK(s.file == NULL);
	CHECK_INT(jitdump_refused(j), ==, 0);
	dump_free(d);
}

/* As the file grows, at each place where a writer may have been interrupted. */
static void test_grows(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;
	size_t first, second;

	put_load(d, 10, 0x1000, 0x100, "first");
	first = d->n;
	put_load(d, 11, 0x2000, 0x100, "second");
	second = d->n;
	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	for (size_t n = 0; n <= second; n++) {
		CHECK_INT(update(j, d, n, ALL), ==, 0);
		check_name(j, 0x1000, n >= first ? "first" : "(none)");
		check_name(j, 0x2000, n == second ? "second" : "(none)");
	}
	/* Shorter: it was begun anew. */
	CHECK_INT(update(j, d, first, ALL), ==, 0);
	check_name(j, 0x1000, "first");
	check_name(j, 0x2000, "(none)");
	dump_free(d);
}

static void test_time(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	put_load(d, 100, 0x1000, 0x100, "old");
	put_load(d, 200, 0x1000, 0x80, "new");
	put_move(d, 300, 0x5000, 0x1000, 0x80);
	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	CHECK_INT(update(j, d, d->n, 99), ==, 0);
	check_name(j, 0x1000, "(none)");
	CHECK_INT(update(j, d, d->n, 199), ==, 0);
	check_name(j, 0x1000, "old");
	CHECK_INT(update(j, d, d->n, 200), ==, 0);
	check_name(j, 0x1000, "new");
	check_name(j, 0x1080, "old");
	check_name(j, 0x5000, "(none)");
	CHECK_INT(update(j, d, d->n, ALL), ==, 0);
	check_name(j, 0x5000, "new");
	dump_free(d);
}

/* Its times are the processor's, of which nothing is known here. */
static void test_arch_clock(void)
{
	struct dump *d = dump_new(1);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	put_load(d, 100, 0x1000, 0x100, "function");
	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	CHECK_INT(update(j, d, d->n, 1), ==, 0);
	check_name(j, 0x1000, "function");
	dump_free(d);
}

static void test_lines(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	begin_lines(d, 10, 0x1000, 4);
	put_line(d, 0x1000, 7, 0, "a.js");
	put_line(d, 0x1020, 9, 3, "\xff");
	put_line(d, 0x1010, 8, 2, "b.js");
	put_line(d, 0x1030, 1, 0, "b.js");
	finish(d);
	put_load(d, 10, 0x1000, 0x100, "lined");
	put_load(d, 10, 0x2000, 0x100, "plain");
	/* Of another function than the one that comes. */
	begin_lines(d, 10, 0x9000, 1);
	put_line(d, 0x9000, 7, 0, "a.js");
	finish(d);
	put_load(d, 10, 0x3000, 0x100, "other");
	put_move(d, 10, 0x4000, 0x1000, 0x100);
	put_move(d, 10, 0x6000, 0x1001, 0x100); /* nothing began there */
	j = load(d);
	check_line(j, 0x1000, "a.js", 7, 0);
	check_line(j, 0x100f, "a.js", 7, 0);
	check_line(j, 0x1010, "b.js", 8, 2);
	check_line(j, 0x1020, "a.js", 9, 3);
	check_line(j, 0x10ff, "b.js", 1, 0);
	check_line(j, 0x2000, "", 0, 0);
	check_line(j, 0x3000, "", 0, 0);
	check_name(j, 0x4010, "lined");
	check_line(j, 0x4010, "b.js", 8, 2);
	check_name(j, 0x6000, "(none)");
	CHECK_INT(jitdump_refused(j), ==, 1);
	dump_free(d);
}

/* V8's addresses have the size of an ELF header added. */
static void test_lines_of_v8(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	begin_lines(d, 10, 0x1000, 2);
	put_line(d, 0x1040, 7, 0, "a.js");
	put_line(d, 0x1060, 8, 0, "a.js");
	finish(d);
	put_load(d, 10, 0x1000, 0x100, "f");
	j = load(d);
	check_line(j, 0x1000, "a.js", 7, 0);
	check_line(j, 0x1020, "a.js", 8, 0);
	dump_free(d);
}

static void check_problem(uint32_t at, uint32_t value, const char *want)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	put_load(d, 10, 0x1000, 0x100, "f");
	memcpy(d->bytes + at, &value, sizeof(value));
	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	CHECK_INT(update(j, d, d->n, ALL), ==, -ENOEXEC);
	CHECK_STR(jitdump_problem(j), want);
	CHECK_INT(update(j, d, d->n, ALL), ==, -ENOEXEC);
	check_name(j, 0x1000, "(none)");
	dump_free(d);
}

static void test_problems(void)
{
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;
	int pair[2];

	check_problem(0, 0x4454694A, "was written in another byte order");
	check_problem(0, 0x464c457f, "does not begin with the header of a jitdump file");
	check_problem(4, 3, "has a version other than 1 and 2");
	check_problem(12, EM_S390, "has code for another architecture");
	check_problem(8, 39, "has a header of impossible size");
	check_problem(8, 1 << 30, "has a header of impossible size");
	check_problem(44, 15, "has a record of impossible size");
	check_problem(44, UINT32_MAX, "has a record of impossible size");
	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
	CHECK_INT(jitdump_update(j, -1, ALL), ==, -EBADF);
	CHECK_INT(pipe(pair), ==, 0);
	CHECK_INT(jitdump_update(j, pair[0], ALL), ==, -EINVAL);
	(void)close_fd(pair[0]);
	(void)close_fd(pair[1]);
	CHECK(jitdump_problem(j) == NULL);
}

/* Records that say less, or more, than they are. */
static void test_contradictions(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;

	begin(d, 0, 1); /* no body */
	finish(d);
	begin(d, 0, 1); /* a name without an end */
	put(d, d->bytes, 40);
	put(d, "abc", 3);
	finish(d);
	begin(d, 1, 1);
	finish(d);
	begin(d, 2, 1);
	finish(d);
	begin_lines(d, 1, 0x1000, UINT64_MAX); /* one of them is there */
	put_line(d, 0x1000, 5, 0, "a.c");
	finish(d);
	put_load(d, 1, 0x1000, 0x100, "f");
	begin_lines(d, 1, 0x2000, 3);
	put_line(d, 0x2000, 5, 0, "a.c");
	put_line(d, 0x1000, 6, 0, "a.c"); /* before the function */
	put_line(d, 0x2000, 7, 0, "a.c");
	finish(d);
	put_load(d, 1, 0x2000, 0x100, "g");
	begin_lines(d, 1, 0x3000, 2);
	put_line(d, 0x3000, 5, 0, "\xff"); /* there is none before */
	finish(d);
	put_load(d, 1, 0x3000, 0x100, "h");
	put_load(d, 1, UINT64_MAX - 5, 0x100, "wraps");
	put_load(d, 1, 0x10000, UINT64_MAX, "everything");
	put_load(d, 1, 0x4000, 0x100, "");
	put_load(d, 1, 0x5000, 0x100, "last");
	j = load(d);
	check_line(j, 0x1001, "a.c", 5, 0);
	check_line(j, 0x2001, "a.c", 5, 0);
	check_line(j, 0x3001, "\xff", 5, 0);
	check_name(j, 0x4000, "(none)");
	check_name(j, 0x5000, "last");
	check_name(j, 0x20000, "(none)");
	check_name(j, UINT64_MAX, "(none)");
	CHECK_INT(jitdump_refused(j), >=, 6);
	dump_free(d);
}

static void test_mutants(void)
{
	struct dump *d = dump_new(0);
	uint8_t whole[4096];
	size_t n;

	for (uint64_t i = 0; i < 8; i++) {
		begin_lines(d, i, 0x1000 * i, 3);
		for (uint64_t k = 0; k < 3; k++)
			put_line(d, 0x1000 * i + 16 * k, 1, 2, "file.c");
		finish(d);
		put_load(d, i, 0x1000 * i, 0x200, "function");
		put_move(d, i, 0x100000 + 0x1000 * i, 0x1000 * i, 0x200);
	}
	n = d->n;
	CHECK_INT(n, <=, sizeof(whole));
	memcpy(whole, d->bytes, n);
	srand(5);
	for (int i = 0; i < 3000; i++) {
		_cleanup_(jitdump_freep) struct jitdump *j = NULL;
		struct symbol s;

		memcpy(d->bytes, whole, n);
		for (int k = 0; k <= i % 4; k++)
			d->bytes[40 + (size_t)rand() % (n - 40)] = (uint8_t)rand();
		CHECK_INT(jitdump_new(&j, &limits, JITDUMP_NAMES), ==, 0);
		(void)update(j, d, n - (size_t)(i % 50), ALL);
		for (uint64_t a = 0; a < 16; a++) {
			if (jitdump_lookup(j, (a & 8 ? 0x100000 : 0) + 0x1000 * (a & 7) + 20, &s) ==
			    0)
				CHECK_INT(strlen(s.name) + (s.file ? strlen(s.file) : 0), >, 0);
		}
	}
	dump_free(d);
}

/* A compiler that replaces its code again and again. */
static void test_bounded(void)
{
	struct symbol_limits small = {.max_table_bytes = 1 << 20};
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;
	uint64_t begin_ns = clock_monotonic_ns(), n = 0;
	off_t at = 0;
	char name[300];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	CHECK_INT(jitdump_new(&j, &small, JITDUMP_NAMES), ==, 0);
	for (int round = 0; round < 200; round++) {
		CHECK_INT(pwrite(d->fd, d->bytes, d->n, at), ==, d->n);
		at += (off_t)d->n;
		d->n = 0;
		CHECK_INT(jitdump_update(j, d->fd, ALL), ==, 0);
		for (int i = 0; i < 100; i++, n++)
			put_load(d, n, 0x1000 + n % 1000 * 0x100, 0x100, name);
	}
	CHECK_INT(jitdump_bytes(j), <, 4 << 20);
	CHECK_INT(jitdump_refused(j), ==, 0);
	check_name(j, 0x1000, name);
	fprintf(stderr, "  %d functions: %.1f ms, %zu bytes\n", (int)n,
		(double)(clock_monotonic_ns() - begin_ns) / 1e6, jitdump_bytes(j));
	dump_free(d);
}

int main(void)
{
	RUN(test_loads);
	RUN(test_grows);
	RUN(test_time);
	RUN(test_arch_clock);
	RUN(test_lines);
	RUN(test_lines_of_v8);
	RUN(test_problems);
	RUN(test_contradictions);
	RUN(test_mutants);
	RUN(test_bounded);
	return 0;
}
