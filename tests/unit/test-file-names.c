/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the files of frames: one table for files with the same contents, and not more
 * than the budget. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/process/status-page.h"
#include "src/symbolizer/file-names.h"
#include "tests/unit/lookup.h"
#include "tests/unit/nm.h"
#include "tests/unit/test.h"

enum { N_FILES = 8 };

DEFINE_CLEANUP(struct file_names *, file_names_free)

static const struct symbol_limits limits = {.max_file_bytes = 1 << 26,
					    .max_inflate_bytes = 1 << 26,
					    .max_table_bytes = 1 << 26,
					    .max_dwarf_bytes = 1 << 26,
					    .max_line_bytes = 1 << 22};
static char directory[] = "/tmp/perfwalk-test.XXXXXX";
static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers: no debug files */
static uint64_t address;
static uint32_t n_closed;

/* A program of a thousand functions; copies that are the same, and copies that are not: something
 * is behind their end. */
static void build(void)
{
	char command[128];
	FILE *f;

	test_make_directory(directory);
	CHECK_INT(chdir(directory), ==, 0);
	f = fopen("program.c", "w");
	CHECK(f != NULL);
	for (int i = 0; i < 1000; i++)
		(void)fprintf(f, "int function_%d(int a)\n{\n\treturn a * %d;\n}\n", i, i + 3);
	(void)fputs("int main(int argc, char **argv)\n{\n\treturn function_500(argc);\n}\n", f);
	(void)fclose(f);
	run("gcc -g -O1 -no-pie -w -Wl,--build-id=sha1 -o program program.c");
	run("cp program same");
	run("strip -g -o stripped program");
	/* Its first and last page, length and build id are the same, and its names are others. */
	run("sed 's/function_500/function_5OO/g' program > altered");
	for (int i = 0; i < N_FILES; i++) {
		(void)snprintf(command, sizeof(command), "(cat program; echo %d) > other-%d", i, i);
		run(command);
	}
	address = nm_address("program", "function_500");
}

static void closed(void *ctx, uint64_t uid)
{
	(void)ctx, (void)uid;
	n_closed++;
}

static struct file_names *make(uint32_t max_files)
{
	struct file_names *n = NULL;

	CHECK_INT(file_names_new(&n, &role, &ask, &limits, max_files, closed, NULL), ==, 0);
	return n;
}

static void add(struct file_names *n, uint64_t uid, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	file_names_add(n, uid, 0, path, fd);
}

/* As a window does that has one address in that file. */
static struct symbol_file *name_one(struct file_names *n, uint64_t uid, bool lines)
{
	struct symbol chain[SYMBOL_MAX_CHAIN];
	struct symbol_file *f;
	size_t n_chain = 1;

	file_names_begin(n);
	CHECK(file_names_identify(n, uid) != NULL);
	f = file_names_symbols(n, uid);
	CHECK(f != NULL);
	if (lines) {
		CHECK_INT(symbol_file_lines(f, address, chain, SYMBOL_MAX_CHAIN, &n_chain), ==, 0);
		CHECK_INT(chain[0].start_line, ==, 4 * 500 + 1);
	} else {
		CHECK_INT(symbol_file_lookup(f, address, chain), ==, 0);
	}
	CHECK_STR(chain[0].name, "function_500");
	return f;
}

static void test_same_contents(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);
	struct symbol_file *first, *second;
	uint64_t bytes;

	add(n, 1, "program");
	add(n, 2, "same");
	first = name_one(n, 1, true);
	bytes = file_names_bytes(n);
	CHECK_INT(bytes, >, 12000);
	CHECK(name_one(n, 2, true) == first);
	CHECK_INT(file_names_bytes(n), ==, bytes);
	/* It is named as long as one of them is there, from that one's file. */
	add(n, 1, "other-0");
	second = name_one(n, 2, true);
	CHECK_INT(file_names_bytes(n), ==, bytes);
	CHECK(name_one(n, 1, true) != second);
	CHECK_INT(file_names_bytes(n), >, bytes + 12000);
}

/* The same build id, but not the same file. */
static void test_forged(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);

	add(n, 1, "program");
	add(n, 2, "other-1");
	CHECK_INT(file_names_identify(n, 1)->n_gnu, ==, 20);
	CHECK_INT(file_names_identify(n, 2)->n_gnu, ==, 20);
	CHECK_INT(memcmp(file_names_identify(n, 1)->gnu, file_names_identify(n, 2)->gnu, 20), ==,
		  0);
	CHECK(name_one(n, 1, false) != name_one(n, 2, false));
}

static const char *name_of(struct file_names *n, uint64_t uid)
{
	struct symbol_file *f;
	struct symbol s;

	file_names_begin(n);
	CHECK(file_names_identify(n, uid) != NULL);
	f = file_names_symbols(n, uid);
	CHECK(f != NULL);
	CHECK_INT(symbol_file_lookup(f, address, &s), ==, 0);
	return s.name;
}

/* A copy with other names, in another container: each has its own, whoever comes first. */
static void test_altered(void)
{
	for (int i = 0; i < 2; i++) {
		_cleanup_(file_names_freep) struct file_names *n = make(100);
		bool first = i == 0;

		add(n, 1, first ? "altered" : "program");
		add(n, 2, first ? "program" : "altered");
		CHECK_STR(name_of(n, 1), first ? "function_5OO" : "function_500");
		CHECK_STR(name_of(n, 2), first ? "function_500" : "function_5OO");
		CHECK_STR(file_names_identify(n, 1)->htlhash, file_names_identify(n, 2)->htlhash);
	}
}

/* A copy that is changed after it was compared has no names any more, and others keep theirs. */
static void test_altered_later(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);

	run("cp program changing");
	add(n, 1, "program");
	add(n, 2, "changing");
	CHECK(file_names_identify(n, 1) != NULL);
	CHECK(name_one(n, 2, false) == name_one(n, 1, false));
	file_names_trim(n, 0);
	CHECK(file_names_symbols(n, 2));
	run("cat altered > changing && touch -d 2001-02-03 changing");
	/* It is looked at once for all frames, and once more after them; others have its table. */
	CHECK(file_names_symbols(n, 2));
	CHECK(file_names_changed(n, 1));
	CHECK(file_names_changed(n, 2));
	CHECK(!file_names_symbols(n, 2));
	CHECK(!file_names_identify(n, 2));
	CHECK_STR(name_of(n, 1), "function_500");
}

/* Another time alone changes nothing, for one that is alone and for one that has a twin. */
static void test_touched(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);
	struct symbol_file *f;

	run("cp program twin && cp other-2 alone");
	add(n, 1, "program");
	add(n, 2, "twin");
	add(n, 3, "alone");
	f = name_one(n, 2, false);
	CHECK(name_one(n, 1, false) == f);
	(void)name_one(n, 3, false);
	for (int i = 0; i < 3; i++) {
		char command[64];

		(void)snprintf(command, sizeof(command), "touch -d 2001-02-0%d twin alone", i + 1);
		run(command);
		CHECK(name_one(n, 2, false) == f);
		(void)name_one(n, 3, false);
	}
	/* Of another size, or the same size with another build id. */
	run("echo >> alone");
	file_names_begin(n);
	CHECK(!file_names_symbols(n, 3));
	run("(cat program; echo no twin) > other-id && sed -i 's/a \\* 3/a * 4/' program.c &&"
	    "gcc -g -O1 -no-pie -w -Wl,--build-id=sha1 -o rebuilt program.c &&"
	    "echo no twin >> rebuilt && test $(stat -c %s rebuilt) = $(stat -c %s other-id)");
	add(n, 4, "other-id");
	(void)name_one(n, 4, false);
	run("cat rebuilt > other-id");
	file_names_begin(n);
	CHECK(!file_names_symbols(n, 4));
	/* Who knows what ran meanwhile. */
	run("(cat program; echo no twin) > other-id");
	file_names_begin(n);
	CHECK(!file_names_symbols(n, 4));
}

/* A debug file that comes for one of them is for all. */
static void test_named_anew(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);

	add(n, 1, "program");
	add(n, 2, "same");
	add(n, 3, "other-0");
	for (uint64_t uid = 1; uid <= 3; uid++)
		(void)name_one(n, uid, false);
	CHECK(!file_names_take_renamed(n, 2));
	file_names_ask_again(n, true);
	for (uint64_t uid = 1; uid <= 3; uid++) {
		CHECK(file_names_take_renamed(n, uid));
		CHECK(!file_names_take_renamed(n, uid));
		(void)name_one(n, uid, false);
	}
}

/* What the broker says when a debug file is being fetched. */
static void answer_fetching(int broker)
{
	struct message m = {.type = MESSAGE_ANSWER, .seq = ask.seq + 1};

	m.answer.error = -EINPROGRESS;
	CHECK_INT(message_send(broker, &m, NULL, 0), ==, 0);
}

/* One that was given up comes after all. */
static void test_late(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);
	const struct symbol_file_id *id;
	int sockets[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), ==, 0);
	ask.sock = sockets[0];
	answer_fetching(sockets[1]);
	add(n, 1, "stripped");
	id = file_names_identify(n, 1);
	(void)name_one(n, 1, false);
	CHECK_INT(file_names_n_awaited(n), ==, 1);
	file_names_debug_file_came(n, id->gnu, id->n_gnu, false);
	CHECK_INT(file_names_n_awaited(n), ==, 0);
	CHECK(!file_names_take_renamed(n, 1));
	file_names_debug_file_came(n, id->gnu, id->n_gnu, true);
	CHECK(file_names_take_renamed(n, 1));
	file_names_debug_file_came(n, id->gnu, id->n_gnu, true);
	CHECK(!file_names_take_renamed(n, 1));
	/* Asked for twice, awaited once. */
	for (int i = 0; i < 2; i++) {
		file_names_close(n);
		answer_fetching(sockets[1]);
		(void)name_one(n, 1, false);
		CHECK_INT(file_names_n_awaited(n), ==, 1);
	}
	ask.sock = -EBADF;
	(void)close(sockets[0]);
	(void)close(sockets[1]);
}

static uint64_t name_all(struct file_names *n, bool lines)
{
	char path[16];

	for (uint64_t i = 0; i < N_FILES; i++) {
		(void)snprintf(path, sizeof(path), "other-%d", (int)i);
		add(n, i, path);
		(void)name_one(n, i, lines);
	}
	return file_names_bytes(n);
}

/* The files not used for longest go, and are read again when they are needed. */
static void test_budget(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);
	uint64_t all = name_all(n, false), each = all / N_FILES, budget = 3 * each + each / 2;

	(void)name_one(n, 0, false);
	file_names_trim(n, all);
	CHECK_INT(file_names_bytes(n), ==, all);
	file_names_trim(n, budget);
	CHECK_INT(file_names_bytes(n), ==, 3 * each);
	(void)name_one(n, 0, false);
	(void)name_one(n, N_FILES - 1, false);
	(void)name_one(n, N_FILES - 2, false);
	CHECK_INT(file_names_bytes(n), ==, 3 * each);
	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < N_FILES; i++) {
			(void)name_one(n, i, false);
			file_names_trim(n, budget);
			CHECK_INT(file_names_bytes(n), <=, budget);
		}
	file_names_trim(n, 0);
	CHECK_INT(file_names_bytes(n), ==, 0);
}

/* Lines go before names do. */
static void test_lines_first(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(100);
	uint64_t all = name_all(n, true), names;
	struct symbol_file *f[N_FILES];

	for (uint64_t i = 0; i < N_FILES; i++)
		f[i] = file_names_symbols(n, i);
	for (uint64_t i = 0; i < N_FILES; i++)
		CHECK_INT(symbol_file_line_bytes(f[i]), >, 4096);
	names = all - N_FILES * symbol_file_line_bytes(f[0]);
	file_names_trim(n, names + N_FILES * UINT64_C(4096));
	CHECK_INT(file_names_bytes(n), <=, names + N_FILES * UINT64_C(4096));
	for (uint64_t i = 0; i < N_FILES; i++)
		CHECK(name_one(n, i, true) == f[i]);
}

static void test_descriptors(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(3);

	n_closed = 0;
	(void)name_all(n, false);
	CHECK_INT(n_closed, ==, N_FILES - 3);
	CHECK(file_names_symbols(n, 0) == NULL);
	(void)name_one(n, N_FILES - 1, false);
}

/* Each file is blamed for itself, and while none is read nobody is. */
static void test_blame(void)
{
	_cleanup_(file_names_freep) struct file_names *n = make(2 * N_FILES);

	file_names_add(n, 5, 0, "first", open("program", O_RDONLY | O_CLOEXEC));
	file_names_add(n, 5 + 1024, 0, "second", open("same", O_RDONLY | O_CLOEXEC));
	for (int i = 0; i < 2; i++) {
		uint64_t job = status.job;

		CHECK_INT(job & 1, ==, 0);
		role_job_begin(&role);
		CHECK_INT(status.job, ==, job + 1);
		file_names_point(n, 6);
		CHECK_INT(status.reading, ==, 0);
		file_names_point(n, i ? 5 + 1024 : 5);
		CHECK_INT(status.reading, ==, 1);
		CHECK_STR(status.file.path, i ? "second" : "first");
		CHECK_INT(status.file.identity.ino, >, 0);
		role_job_begin(&role);
		CHECK_INT(status.job, ==, job + 3);
		CHECK_INT(status.reading, ==, 0);
		role_job_end(&role);
	}
}

int main(void)
{
	if (system("command -v gcc nm strip >/dev/null") != 0)
		SKIP("gcc or binutils are not installed");
	build();
	RUN(test_same_contents);
	RUN(test_forged);
	RUN(test_altered);
	RUN(test_altered_later);
	RUN(test_touched);
	RUN(test_named_anew);
	RUN(test_late);
	RUN(test_budget);
	RUN(test_lines_first);
	RUN(test_descriptors);
	RUN(test_blame);
	run("rm -r \"$PWD\"");
	return 0;
}
