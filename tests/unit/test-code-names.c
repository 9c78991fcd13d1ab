/* SPDX-License-Identifier: Apache-2.0 */
/* Names of compiled code of several processes: from both kinds of files, and within the budget. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/process/role.h"
#include "src/process/status-page.h"
#include "src/symbolizer/code-names.h"
#include "tests/unit/jitdump-file.h"
#include "tests/unit/test.h"
#include "util/file-identity.h"

#define START 0x7f0000000000

DEFINE_CLEANUP(struct code_names *, code_names_free)

static const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
static struct status_page status;
static struct role role = {.status = &status};

static void write_all(int fd, const void *bytes, size_t n)
{
	CHECK_INT(write(fd, bytes, n), ==, (int64_t)n);
}

/* Functions of 16 bytes: map_0 at START, and so on. Its descriptor, which is not ours. */
static int add_map(struct code_names *c, uint32_t pid, uint32_t n)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	char *text = malloc((size_t)n * 64);
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "%llx 10 map_%u\n", START + i * 16ull, i);
	write_all(fd, text, len);
	free(text);
	code_names_add(c, CODE_PERF_MAP, pid, 1, fd);
	return fd;
}

static int add_dump(struct code_names *c, uint32_t pid, uint32_t n)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct dump *d = dump_new(0);
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "dump_%u", i);
		put_load(d, 10, START + i * 16ull, 16, name);
	}
	write_all(fd, d->bytes, d->n);
	dump_free(d);
	code_names_add(c, CODE_JITDUMP, pid, 1, fd);
	return fd;
}

/* Memory of all names after a look-up in one process, trimmed to the budget. */
static uint64_t look_up(struct code_names *c, uint32_t pid, uint32_t i, const char *want,
			uint64_t max_bytes)
{
	struct symbol s;

	CHECK_INT(code_names_lookup(c, pid, 1, START + i * 16ull + 3, UINT64_MAX, &s), ==, 0);
	CHECK_STR(s.name, want);
	code_names_trim(c, max_bytes);
	return code_names_bytes(c);
}

static void test_both_kinds(void)
{
	_cleanup_(code_names_freep) struct code_names *c = NULL;
	struct symbol s;

	CHECK_INT(code_names_new(&c, &role, &limits), ==, 0);
	(void)add_map(c, 1, 10);
	(void)add_dump(c, 1, 5);
	(void)add_map(c, 2, 10);
	CHECK(code_names_have_times(c, 1, 1));
	CHECK(!code_names_have_times(c, 2, 1));
	code_names_refresh(c);
	(void)look_up(c, 1, 4, "dump_4", UINT64_MAX);
	(void)look_up(c, 1, 5, "map_5", UINT64_MAX);
	(void)look_up(c, 2, 4, "map_4", UINT64_MAX);
	CHECK_INT(code_names_lookup(c, 3, 1, START, UINT64_MAX, &s), ==, 1);
	CHECK_INT(code_names_lookup(c, 2, 2, START, UINT64_MAX, &s), ==, 1);
}

static void test_budget(void)
{
	_cleanup_(code_names_freep) struct code_names *c = NULL;
	uint64_t one, two, both;

	CHECK_INT(code_names_new(&c, &role, &limits), ==, 0);
	(void)add_map(c, 1, 20000);
	(void)add_map(c, 2, 40000);
	code_names_refresh(c);
	one = look_up(c, 1, 777, "map_777", UINT64_MAX);
	both = look_up(c, 2, 777, "map_777", UINT64_MAX);
	two = both - one;
	CHECK_INT(one, >, 20000 * 8);
	CHECK_INT(two, >, one);

	/* The process asked about last goes, since a question about the other may still come. */
	code_names_trim(c, both - 1);
	CHECK_INT(code_names_bytes(c), ==, one);
	CHECK_INT(look_up(c, 1, 5, "map_5", both - 1), ==, one);
	/* Its names are read again. */
	CHECK_INT(look_up(c, 2, 30000, "map_30000", both), ==, both);

	/* A window later: what it does not speak of goes first. */
	(void)add_map(c, 2, 40000);
	code_names_refresh(c);
	CHECK_INT(look_up(c, 2, 1, "map_1", both - 1), ==, two);
	/* One alone keeps its names: each window would read them again. */
	CHECK_INT(look_up(c, 2, 2, "map_2", 1), ==, two);
	CHECK_INT(look_up(c, 1, 2, "map_2", both), ==, both);
}

/* What ended takes no memory for ever; what only sleeps is read again. */
static void test_not_asked_about(void)
{
	_cleanup_(code_names_freep) struct code_names *c = NULL;
	uint64_t one, both;

	CHECK_INT(code_names_new(&c, &role, &limits), ==, 0);
	(void)add_map(c, 1, 2000);
	(void)add_map(c, 2, 4000);
	code_names_refresh(c);
	one = look_up(c, 1, 7, "map_7", UINT64_MAX);
	both = look_up(c, 2, 7, "map_7", UINT64_MAX);
	for (int i = 0; i < CODE_NAMES_KEPT; i++) {
		code_names_refresh(c);
		CHECK_INT(look_up(c, 1, 7, "map_7", UINT64_MAX), ==, both);
	}
	code_names_refresh(c);
	CHECK_INT(look_up(c, 1, 7, "map_7", UINT64_MAX), ==, one);
	CHECK_INT(look_up(c, 2, 9, "map_9", UINT64_MAX), ==, both);
}

/* A jitdump file is read again from its start. */
static void test_budget_of_dumps(void)
{
	_cleanup_(code_names_freep) struct code_names *c = NULL;
	uint64_t one;

	CHECK_INT(code_names_new(&c, &role, &limits), ==, 0);
	(void)add_map(c, 1, 1000);
	(void)add_dump(c, 2, 500);
	code_names_refresh(c);
	one = look_up(c, 1, 1, "map_1", 1);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(look_up(c, 2, 7, "dump_7", 1), ==, one);
		CHECK(code_names_have_times(c, 2, 1));
	}
}

static void check_blamed(uint32_t pid, const char *what, int fd)
{
	const struct status_file *f = &status.file;
	struct file_identity id;

	CHECK_INT(status.reading, ==, 1);
	CHECK(strncmp(f->path, what, strlen(what)) == 0);
	CHECK_INT(strtoul(f->path + strlen(what), NULL, 10), ==, pid);
	CHECK_INT(file_identity_get(fd, &id), ==, 0);
	CHECK(file_identity_equal(&f->identity, &id));
	/* What has grown since is the same file. */
	write_all(fd, "1 1 more\n", 9);
	CHECK_INT(file_identity_get(fd, &id), ==, 0);
	CHECK(file_identity_equal(&f->identity, &id));
	CHECK(file_identity_equal(&id, &f->identity));
	id.ino++;
	CHECK(!file_identity_equal(&f->identity, &id));
}

/* Whoever dies of one of these files can say which. */
static void test_blame(void)
{
	_cleanup_(code_names_freep) struct code_names *c = NULL;
	_cleanup_close_ int map = -EBADF, dump = -EBADF;

	CHECK_INT(code_names_new(&c, &role, &limits), ==, 0);
	map = fcntl(add_map(c, 1, 10), F_DUPFD_CLOEXEC, 0);
	dump = fcntl(add_dump(c, 2, 10), F_DUPFD_CLOEXEC, 0);
	code_names_refresh(c);
	role_job_begin(&role);
	(void)look_up(c, 1, 1, "map_1", UINT64_MAX);
	check_blamed(1, "the perf map of process ", map);
	role_job_begin(&role);
	(void)look_up(c, 2, 1, "dump_1", UINT64_MAX);
	check_blamed(2, "the jitdump file of process ", dump);
	role_job_end(&role);
}

int main(void)
{
	RUN(test_both_kinds);
	RUN(test_budget);
	RUN(test_not_asked_about);
	RUN(test_budget_of_dumps);
	RUN(test_blame);
	return 0;
}
