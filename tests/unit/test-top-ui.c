/* SPDX-License-Identifier: Apache-2.0 */
/* A live view without its terminal: what keys do, what lines say, and tables from a stranger. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/screen/ui.h"
#include "src/screen/wire.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

#define ROWS	24
#define COLUMNS 80

static struct top_table sum, other;
static struct top_ui ui;
static char lines[64][TOP_LINE_MAX];
static const struct top_facts facts = {.host = "host", .rate_hz = 99, .n_cpus = 2};

static void add(const char *function, const char *comm, const char *owner, uint32_t pid,
		uint64_t self, uint64_t total)
{
	const struct top_key key = {function, "mod", comm, owner, pid, TOP_CODE_FILE};

	CHECK_INT(top_table_add(&sum, &key, self, total), ==, 0);
}

static void fill(void)
{
	top_table_clear(&sum);
	add("spin", "worker", "a.service", 7, 60, 60);
	add("main", "worker", "a.service", 7, 0, 60);
	add("spin", "worker", "a.service", 8, 10, 10);
	add("parse", "other", "", 9, 30, 30);
	sum.counts = (struct top_counts){.n_samples = 100,
					 .whole = 100,
					 .n_lost = 2,
					 .n_user_stacks = 50,
					 .n_incomplete = 5};
	sum.period_ns = 10000000;
	sum.start_ns = 1000000000;
	sum.end_ns = 2000000000;
}

static void put(void *ctx, unsigned int y, enum top_style style, const char *text)
{
	CHECK_INT(y, <, ROWS);
	CHECK_INT(strlen(text), <=, COLUMNS);
	(void)snprintf(lines[y], sizeof(lines[y]), "%s", text);
}

static void draw(void)
{
	memset(lines, 0, sizeof(lines));
	top_ui_update(&ui, &sum);
	top_ui_draw(&ui, &facts, ROWS, COLUMNS, put, NULL);
}

static bool key(int k)
{
	bool on = top_ui_key(&ui, k);

	draw();
	return on;
}

static bool shows(unsigned int y, const char *text)
{
	return strstr(lines[y], text) != NULL;
}

static void test_functions_of_all_processes(void)
{
	fill();
	top_ui_init(&ui);
	draw();
	CHECK(shows(1, "functions by self") && shows(1, "100% = all 100 samples"));
	CHECK(shows(3, " 70.00") && shows(3, "spin"));
	CHECK(shows(4, " 30.00") && shows(4, "parse"));
	CHECK(shows(22, "lost 2 (2.0%)") && shows(22, "10.0%"));
	CHECK(key('s') && shows(1, "by total") && shows(4, "main") && shows(4, " 60.00"));
	CHECK(!key('q'));
	top_ui_deinit(&ui);
}

/* Wilson's intervals of 70, 60 and 0 of 100. */
static void test_confidence(void)
{
	fill();
	top_ui_init(&ui);
	draw();
	CHECK(!shows(2, "95% RANGE"));
	CHECK(key('c') && shows(2, "SELF%  95% RANGE  TOTAL%  95% RANGE  PROCESS"));
	CHECK(shows(3, "  70.00  60.4-78.1   70.00  60.4-78.1  worker") && shows(3, "spin"));
	CHECK(shows(5, "   0.00    0.0-3.7   60.00  50.2-69.1  worker"));
	CHECK(key('2') && shows(2, " SHARE%  95% RANGE    CPU%"));
	CHECK(shows(3, "  60.00  50.2-69.1    60.0        7  worker"));
	CHECK(key('c') && !shows(2, "95% RANGE"));
	sum.counts.n_samples = sum.counts.whole = 0;
	CHECK(key('c') && shows(3, "          -"));
	top_ui_deinit(&ui);
}

static void test_jump_and_back(void)
{
	fill();
	top_ui_init(&ui);
	CHECK(key('2') && shows(3, " 60.00") && shows(3, "60.0        7") && shows(4, "other"));
	CHECK(key(TOP_KEY_DOWN) && key(TOP_KEY_ENTER));
	CHECK(shows(1, "of process 9") && shows(3, "parse") && !*lines[4]);
	CHECK(key(TOP_KEY_ESCAPE) && shows(1, "processes"));
	CHECK(key('3') && shows(3, " 70.00") && shows(3, "a.service") && shows(4, "[none]"));
	CHECK(key(TOP_KEY_ENTER) && shows(1, "of a.service") && shows(3, "spin"));
	CHECK(!shows(5, "parse"));
	top_ui_deinit(&ui);
}

/* What is in use has no rate; what was allocated has one. 1.96 * 10 / 100 = 19.6%. */
static void test_memory(void)
{
	fill();
	sum.period_ns = 0;
	sum.period_events = 1;
	sum.end_ns = 3000000000;
	sum.unit = TOP_UNIT_BYTES;
	sum.variance = 100;
	top_ui_init(&ui);
	CHECK(key('2') && shows(0, "50 samples/s  window") && shows(2, "BYTES/S"));
	CHECK(shows(1, "100% = 100 B +-20% in 2.0 s") && shows(3, "  60.00    30 B        7"));
	sum.counts.n_lost = 24; /* of 124, which are 19.4% */
	CHECK(key('2') && shows(1, "100% = 100 B +-20% in 2.0 s"));
	sum.counts.n_lost = 25;
	CHECK(key('2') && shows(1, "100% = 100 B in 2.0 s"));
	sum.counts.n_lost = 0;
	sum.unit = TOP_UNIT_OBJECTS;
	CHECK(key('2') && shows(2, "PER S") && shows(3, "  60.00    30.0        7"));
	CHECK(shows(1, "100% = 100 objects +-20% in 2.0 s"));
	sum.in_use = true;
	CHECK(key('2') && shows(0, "now, by 100 samples") && shows(2, "OBJECTS"));
	CHECK(shows(1, "100% = 100 objects +-20% in use") && shows(3, "  60.00      60        7"));
	sum.unit = TOP_UNIT_BYTES;
	sum.variance = 0;
	CHECK(key('2') && shows(1, "100% = 100 B in use") && shows(3, "  60.00    60 B        7"));
	CHECK(!shows(2, "BYTES/S") && shows(2, "BYTES"));
	top_ui_deinit(&ui);
}

static void type(const char *text)
{
	for (; *text; text++)
		CHECK(key((unsigned char)*text));
}

static void test_filter(void)
{
	fill();
	top_ui_init(&ui);
	type("/par(");
	CHECK(key(TOP_KEY_ENTER) && ui.editing && *ui.message); /* told, and still to be mended */
	CHECK(key(TOP_KEY_BACKSPACE));
	type("q"); /* a letter here */
	CHECK(key(TOP_KEY_BACKSPACE) && key(TOP_KEY_ENTER));
	CHECK(shows(1, "/par/") && shows(3, "parse") && shows(3, " 30.00") && !*lines[4]);
	CHECK(key(TOP_KEY_ESCAPE) && shows(3, "spin"));
	top_ui_deinit(&ui);
}

static void test_selection_follows_its_row(void)
{
	fill();
	top_ui_init(&ui);
	CHECK(key('2') && key(TOP_KEY_DOWN));
	CHECK_INT(ui.selected, ==, 1);
	add("parse", "other", "", 9, 200, 200);
	draw();
	CHECK_INT(ui.selected, ==, 0);
	CHECK(key(TOP_KEY_END));
	CHECK_INT(ui.selected, ==, 2);
	CHECK(key(TOP_KEY_PAGE_UP));
	CHECK_INT(ui.selected, ==, 0);
	for (unsigned int rows = 0; rows < 12; rows++)
		top_ui_draw(&ui, &facts, rows, rows * 5, put, NULL);
	top_ui_deinit(&ui);
}

/* A process and below it a chain of functions. */
static void add_path(const char *comm, uint32_t pid, const char *const *names, uint32_t n,
		     uint64_t samples)
{
	struct top_row key = {.pid = pid};
	uint32_t node = TOP_NO_NODE;

	key.comm = strtab_put(&sum.strings, comm);
	for (uint32_t i = 0; i <= n; i++) {
		const struct top_row *row;

		key.function = i ? strtab_put(&sum.strings, names[i - 1]) : STRID_EMPTY;
		row = top_table_row(&sum, &key);
		CHECK(row);
		node = top_table_node(&sum, node, (uint32_t)(row - sum.rows.items));
		CHECK_INT(node, !=, TOP_NO_NODE);
		sum.nodes.items[node].total += samples;
		sum.nodes.items[node].self += i == n ? samples : 0;
	}
}

static void fill_tree(void)
{
	static const char *const deep[] = {"main", "serve", "parse", "spin"};
	static const char *const brief[] = {"main", "serve", "write"};

	top_table_clear(&sum);
	add_path("web", 7, deep, 4, 50);
	add_path("web", 7, brief, 3, 20);
	add_path("idle", 8, brief, 1, 30);
	sum.counts = (struct top_counts){.n_samples = 100, .whole = 100};
	sum.end_ns = 1000000000;
}

/* The file that calls Python's functions is its interpreter. */
static void test_native(void)
{
	static const char *const names[] = {"eval", "handler", "list_sort"};
	struct top_row *rows;

	top_table_clear(&sum);
	add_path("web", 7, names, 3, 10);
	sum.counts = (struct top_counts){.n_samples = 10, .whole = 10};
	rows = sum.rows.items;
	rows[1].code = rows[3].code = TOP_CODE_FILE;
	rows[2].code = TOP_CODE_RUNTIME;
	rows[2].module = strtab_put(&sum.strings, "[cpython]");
	top_ui_init(&ui);
	CHECK(key('s') && *lines[4] && *lines[5]);
	CHECK(key('i') && shows(1, "no native frames") && shows(3, "handler") && !*lines[4]);
	CHECK(key('4') && key(TOP_KEY_RIGHT) && shows(4, "handler"));
	CHECK(key('i') && !shows(1, "no native frames") && shows(4, "eval"));
	top_ui_deinit(&ui);
}

static void test_tree(void)
{
	fill_tree();
	top_ui_init(&ui);
	CHECK(key('4') && shows(1, "tree by total") && shows(2, "WHAT IS CALLED"));
	CHECK(shows(3, "  70.00    0.00  + web (7)") && shows(4, "+ idle (8)") && !*lines[5]);
	/* main and serve have all of it, parse has not. */
	CHECK(key(TOP_KEY_RIGHT) && shows(3, "- web") && shows(4, " - main") &&
	      shows(5, "  - serve"));
	CHECK(shows(6, "   + parse") && shows(7, "20.00   20.00       write") &&
	      shows(8, "+ idle"));
	CHECK_INT(ui.selected, ==, 0);
	CHECK(key(TOP_KEY_RIGHT) && key(TOP_KEY_RIGHT));
	CHECK_INT(ui.selected, ==, 2);
	CHECK(key(TOP_KEY_LEFT) && shows(5, "  + serve") && shows(6, "+ idle"));
	CHECK(key(TOP_KEY_LEFT) && key(TOP_KEY_LEFT) && shows(4, "+ main") && shows(5, "+ idle"));
	CHECK_INT(ui.selected, ==, 1);
	/* More samples elsewhere: what was open stays so, and selected. */
	add_path("idle", 8, NULL, 0, 90);
	draw();
	CHECK(shows(3, "+ idle") && shows(4, "- web") && shows(5, "+ main"));
	CHECK_INT(ui.selected, ==, 2);
	type("/spin");
	CHECK(key(TOP_KEY_ENTER) && shows(3, "- web") && shows(6, "   - parse"));
	CHECK(shows(7, "      spin") && !*lines[8]);
	CHECK(key(TOP_KEY_ESCAPE) && key('2') && key('4') && shows(3, "+ idle"));
	top_ui_deinit(&ui);
}

static void test_tree_of_a_process(void)
{
	fill_tree();
	add("main", "web", "", 7, 70, 70);
	add("main", "idle", "", 8, 30, 30);
	top_ui_init(&ui);
	CHECK(key('2') && key(TOP_KEY_DOWN) && key(TOP_KEY_ENTER) && shows(1, "of process 8"));
	CHECK(key('4') && shows(1, "tree of process 8") && shows(3, "+ idle") && !*lines[4]);
	CHECK(key(TOP_KEY_ENTER) && shows(4, "  main") && key(TOP_KEY_ENTER) && !*lines[4]);
	CHECK(key('1') && shows(1, "functions of process 8") && key(TOP_KEY_ESCAPE));
	CHECK(shows(1, "processes") && key('4') && shows(3, "+ web"));
	top_ui_deinit(&ui);
}

static void test_deep_tree(void)
{
	static const char *names[600];

	for (uint32_t i = 0; i < 600; i++)
		names[i] = "again";
	top_table_clear(&sum);
	add_path("deep", 7, names, 600, 9);
	sum.counts.n_samples = sum.counts.whole = 9;
	top_ui_init(&ui);
	ui.view.all_open = true;
	CHECK(key('4'));
	CHECK_INT(ui.shown.rows.n, ==, 601);
	CHECK(key(TOP_KEY_END) && shows(21, "100.00  ") && shows(21, " 600>   again"));
	top_ui_deinit(&ui);
}

static void check_fit(const char *text, unsigned int columns, bool pad, const char *expected)
{
	char buf[64];

	(void)top_layout_fit(buf, sizeof(buf), text, columns, pad);
	CHECK_STR(buf, expected);
}

static void test_fit(void)
{
	check_fit("abcdef", 6, true, "abcdef");
	check_fit("abcdef", 4, true, "abc~");
	check_fit("ab", 4, true, "ab  ");
	check_fit("ab", 0, true, "");
	check_fit("\xff"
		  "a\033[2J",
		  8, false, "?a?[2J");
	check_fit("größe", 5, true, "größe");
	check_fit("größer", 5, true, "größ~");
	check_fit("日本語", 5, true, "日~  ");
	check_fit("日本語", 4, true, "日~ ");
}

static int read_bytes_as_table(const uint8_t *bytes, size_t n)
{
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK_INT(write(fd, bytes, n), ==, (ssize_t)n);
	top_table_clear(&other);
	return top_table_read(&other, fd);
}

static void test_wire(void)
{
	_cleanup_close_ int fd = -EBADF;
	static const struct top_table nothing;
	static uint8_t bytes[4096];
	ssize_t n;

	fd = top_table_write(&nothing);
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	fill();
	add("evil\033[2J", "x", "", 10, 0, 1);
	sum.in_use = true;
	sum.variance = 4;
	fd = top_table_write(&sum);
	CHECK_INT(fd, >=, 0);
	n = pread(fd, bytes, sizeof(bytes), 0);
	CHECK_INT(read_bytes_as_table(bytes, (size_t)n), ==, 0);
	CHECK_INT(other.rows.n, ==, 5);
	CHECK_INT(other.rows.items[0].self, ==, 60);
	CHECK_INT(other.counts.n_incomplete, ==, 5);
	CHECK_INT(other.end_ns, ==, sum.end_ns);
	CHECK(other.in_use && other.variance == 4);
	CHECK_STR(strtab_get(&other.strings, other.rows.items[4].function), "evil?[2J");
	/* Every shorter one is refused, and what is changed does no harm. */
	for (size_t i = 0; i < (size_t)n; i++)
		CHECK_INT(read_bytes_as_table(bytes, i), ==, -EBADMSG);
	CHECK_INT(other.nodes.n, ==, 0);
	fill_tree();
	(void)close(fd);
	fd = top_table_write(&sum);
	n = pread(fd, bytes, sizeof(bytes), 0);
	CHECK_INT(read_bytes_as_table(bytes, (size_t)n), ==, 0);
	CHECK_INT(other.nodes.n, ==, sum.nodes.n);
	CHECK(memcmp(other.nodes.items, sum.nodes.items, sum.nodes.n * sizeof(*sum.nodes.items)) ==
	      0);
	for (size_t i = 0; i < (size_t)n; i++) {
		uint8_t was = bytes[i];

		bytes[i] ^= 0xff;
		(void)read_bytes_as_table(bytes, (size_t)n);
		for (uint32_t j = 0; j < other.rows.n; j++)
			CHECK_INT(other.rows.items[j].total, <=, 2 * other.counts.whole);
		for (uint32_t j = 0; j < other.nodes.n; j++) {
			CHECK_INT(other.nodes.items[j].row, <, other.rows.n);
			CHECK(other.nodes.items[j].parent < j ||
			      other.nodes.items[j].parent == TOP_NO_NODE);
		}
		bytes[i] = was;
	}
}

int main(void)
{
	CHECK(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
	top_table_init(&sum);
	top_table_init(&other);
	RUN(test_functions_of_all_processes);
	RUN(test_confidence);
	RUN(test_memory);
	RUN(test_jump_and_back);
	RUN(test_filter);
	RUN(test_selection_follows_its_row);
	RUN(test_native);
	RUN(test_tree);
	RUN(test_tree_of_a_process);
	RUN(test_deep_tree);
	RUN(test_fit);
	RUN(test_wire);
	top_table_deinit(&sum);
	top_table_deinit(&other);
	return 0;
}
