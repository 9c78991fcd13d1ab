/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the local store's files, and its files of a time range as one input. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "src/store/name.h"
#include "src/store/stored.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/test-store.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void add(uint64_t time, const char *text)
{
	char name[STORE_NAME_MAX];

	write_file(store_format_name(name, time, 7), text);
}

static void test_names(void)
{
	static const char *const bad[] = {
		"",
		"README",
		"00000000000000000012-0000002a",	      /* no suffix */
		"12-2a" STORE_SUFFIX,			      /* another order by name */
		"00000000000000000012-0000002A" STORE_SUFFIX, /* two names for one sum */
		"+0000000000000000012-0000002a" STORE_SUFFIX, /* as sscanf() would take it */
		"99999999999999999999-0000002a" STORE_SUFFIX, /* more than 64 bits */
		"00000000000000000012-0000002a" STORE_SUFFIX "x",
	};
	char name[STORE_NAME_MAX];
	uint64_t time = 1;
	uint32_t sum = 2;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!store_parse_name(bad[i], &time, &sum));
	CHECK(time == 1 && sum == 2);
	CHECK_STR(store_format_name(name, 12, 42), "00000000000000000012-0000002a" STORE_SUFFIX);
	CHECK(store_parse_name(name, &time, &sum) && time == 12 && sum == 42);
	CHECK_INT(strlen(store_format_name(name, UINT64_MAX, UINT32_MAX)), <, STORE_NAME_MAX);
	CHECK(store_parse_name(name, &time, &sum) && time == UINT64_MAX && sum == UINT32_MAX);
}

/* The files since then are these texts, one behind the other. */
static void check_since(uint64_t since, const char *const *texts, uint32_t n_texts)
{
	uint32_t n, length;
	int fd = stored_open(dir, since, 1000, &n);
	char buf[64];

	CHECK_INT(fd, >=, 0);
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	for (uint32_t i = 0; i < n_texts; i++) {
		CHECK_INT(read(fd, &length, sizeof(length)), ==, sizeof(length));
		CHECK_INT(be32toh(length), ==, strlen(texts[i]));
		CHECK_INT(read(fd, buf, strlen(texts[i])), ==, strlen(texts[i]));
		CHECK(memcmp(buf, texts[i], strlen(texts[i])) == 0);
	}
	CHECK_INT(read(fd, buf, 1), ==, 0);
	close(fd);
}

static void test_range(void)
{
	uint32_t n;

	add(300, "three");
	add(100, "one");
	add(200, "second");
	write_file("README", "not a profile");
	check_since(0, (const char *const[]){"one", "second", "three"}, 3);
	check_since(200, (const char *const[]){"second", "three"}, 2);
	check_since(300, (const char *const[]){"three"}, 1);
	CHECK_INT(stored_open(dir, 301, 1000, &n), ==, -ENOENT);
	CHECK_INT(stored_open(path_of("missing"), 0, 1000, &n), ==, -ENOENT);
	CHECK_INT(stored_open(dir, 0, strlen("onesecond"), &n), ==, -EFBIG);
}

/* The directory belongs to a user who may put anything there. */
static void test_no_files(void)
{
	char name[STORE_NAME_MAX];
	uint32_t n;

	add(400, "");
	CHECK_INT(mkfifo(path_of(store_format_name(name, 500, 7)), 0600), ==, 0);
	CHECK_INT(mkdir(path_of(store_format_name(name, 600, 7)), 0700), ==, 0);
	check_since(300, (const char *const[]){"three"}, 1);
	CHECK_INT(symlink("/etc/passwd", path_of(store_format_name(name, 700, 7))), ==, 0);
	CHECK_INT(stored_open(dir, 300, 1 << 20, &n), ==, -ELOOP);
}

static void test_in_use(void)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	CHECK(!stored_in_use(dir));
	CHECK_INT(flock(fd, LOCK_EX | LOCK_NB), ==, 0);
	CHECK(stored_in_use(dir));
	close(fd);
	CHECK(!stored_in_use(dir));
}

static void clean_up(void)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		fprintf(stderr, "%s stays\n", dir);
}

int main(void)
{
	CHECK(mkdtemp(dir) != NULL);
	atexit(clean_up);
	RUN(test_names);
	RUN(test_range);
	RUN(test_no_files);
	RUN(test_in_use);
	return 0;
}
