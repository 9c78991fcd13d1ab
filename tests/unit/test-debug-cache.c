/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/fetcher/debug-cache.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static char dir[] = "/tmp/test-debug-cache.XXXXXX";
static struct debug_cache cache = {.max_bytes = 1000, .missing_ns = 60 * NSEC_PER_SEC};

static struct debug_id id_of(uint8_t n)
{
	return (struct debug_id){.n = 3, .bytes = {0x0a, n, 0xff}};
}

static bool there(const char *name)
{
	struct stat st;

	return fstatat(cache.dir_fd, name, &st, 0) == 0;
}

/* Seconds before now. */
static void make_old(const char *name, time_t age)
{
	const struct timespec times[2] = {{time(NULL) - age, 0}, {time(NULL) - age, 0}};

	CHECK_INT(utimensat(cache.dir_fd, name, times, 0), ==, 0);
}

static void put(uint8_t n, off_t size)
{
	struct debug_id id = id_of(n);
	int fd = debug_cache_begin(&cache, &id);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, size), ==, 0);
	CHECK_INT(debug_cache_commit(&cache, &id, fd), ==, 0);
	(void)close(fd);
}

static void test_whole_or_not_there(void)
{
	struct debug_id id = id_of(1);
	char hex[DEBUG_ID_HEX_MAX];
	int fd;

	CHECK_STR(debug_id_hex(&id, hex), "0a01ff");
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_UNKNOWN);
	fd = debug_cache_begin(&cache, &id);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, "x", 1), ==, 1);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_UNKNOWN);
	debug_cache_abandon(&cache, &id);
	(void)close(fd);
	CHECK(!there("0a01ff.debug"));
	put(1, 10);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_FOUND);
	CHECK(there("0a01ff.debug"));
}

static void test_missing(void)
{
	struct debug_id id = id_of(2);

	CHECK_INT(debug_cache_put_missing(&cache, &id), ==, 0);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_MISSING);
	make_old("0a02ff.missing", 61);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_UNKNOWN);
	/* Told again, it is believed again. */
	CHECK_INT(debug_cache_put_missing(&cache, &id), ==, 0);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_MISSING);
	make_old("0a02ff.missing", 61);
	debug_cache_trim(&cache);
	CHECK(!there("0a02ff.missing"));
	CHECK_INT(debug_cache_put_missing(&cache, &id), ==, 0);
	put(2, 1);
	CHECK(!there("0a02ff.missing"));
}

static void test_oldest_go(void)
{
	put(3, 400);
	make_old("0a03ff.debug", 20);
	put(4, 400);
	make_old("0a04ff.debug", 30);
	cache.n_evicted = 0;
	put(5, 400);
	CHECK(there("0a03ff.debug") && !there("0a04ff.debug") && there("0a05ff.debug"));
	CHECK_INT(cache.n_evicted, ==, 1);
}

/* One that was read since it came stays before one that was not. */
static void test_used_stay(void)
{
	const struct timespec read[2] = {{time(NULL) - 5, 0}, {0, UTIME_OMIT}};

	make_old("0a03ff.debug", 100);
	make_old("0a05ff.debug", 100);
	put(7, 400);
	make_old("0a07ff.debug", 30);
	put(8, 400);
	make_old("0a08ff.debug", 20);
	CHECK_INT(utimensat(cache.dir_fd, "0a07ff.debug", read, 0), ==, 0);
	put(9, 400);
	CHECK(there("0a07ff.debug") && !there("0a08ff.debug") && there("0a09ff.debug"));
}

/* What a process is writing stays, what one that died had begun goes. */
static void test_begun(void)
{
	struct debug_id id = id_of(6);
	char name[64];
	int fd, status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(debug_cache_begin(&cache, &id) < 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	(void)snprintf(name, sizeof(name), "0a06ff.%d.part", (int)pid);
	CHECK(there(name));
	fd = debug_cache_begin(&cache, &id);
	CHECK_INT(fd, >=, 0);
	debug_cache_trim(&cache);
	CHECK(!there(name));
	CHECK_INT(debug_cache_commit(&cache, &id, fd), ==, 0);
	(void)close(fd);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_FOUND);
}

/* A container shows build ids that no server has, one after the other. */
static void test_many_missing(void)
{
	struct debug_id id;
	char name[64];

	for (unsigned int i = 0; i < 4100; i++) {
		(void)snprintf(name, sizeof(name), "0b%04x.missing", i);
		(void)close(openat(cache.dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		make_old(name, i < 10 ? 30 : 20);
	}
	id = id_of(10);
	CHECK_INT(debug_cache_put_missing(&cache, &id), ==, 0);
	CHECK_INT(debug_cache_find(&cache, &id), ==, DEBUG_CACHE_MISSING);
	for (unsigned int i = 0; i < 5; i++) {
		unsigned int n = 0;

		for (unsigned int k = 0; k < 10; k++) {
			(void)snprintf(name, sizeof(name), "0b%04x.missing", k);
			n += there(name);
		}
		CHECK_INT(n, ==, 5 - i); /* the oldest have gone */
		id = id_of((uint8_t)(11 + i));
		CHECK_INT(debug_cache_put_missing(&cache, &id), ==, 0);
	}
}

static void test_reserve(void)
{
	int dir_fd = cache.dir_fd, fd, filler;
	struct debug_id id = id_of(20);
	char sub[64];

	(void)snprintf(sub, sizeof(sub), "%s/disk", dir);
	CHECK_INT(mkdir(sub, 0700), ==, 0);
	if (mount("tmpfs", sub, "tmpfs", 0, "size=1m,mode=0700") < 0) {
		fprintf(stderr, "  left out: no tmpfs can be mounted here\n");
		return;
	}
	cache.dir_fd = open(sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = debug_cache_begin(&cache, &id);
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	debug_cache_abandon(&cache, &id);
	filler = openat(cache.dir_fd, "filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(posix_fallocate(filler, 0, 1000 << 10), ==, 0); /* less than 5 % is left */
	(void)close(filler);
	CHECK_INT(debug_cache_begin(&cache, &id), ==, -ENOSPC);
	(void)close(cache.dir_fd);
	cache.dir_fd = dir_fd;
	CHECK_INT(umount2(sub, MNT_DETACH), ==, 0);
}

int main(void)
{
	test_make_directory(dir);
	cache.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(cache.dir_fd, >=, 0);
	test_whole_or_not_there();
	test_missing();
	test_oldest_go();
	test_used_stay();
	test_begun();
	test_many_missing();
	test_reserve();
	return 0;
}
