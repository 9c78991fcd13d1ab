/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "src/store/stored.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/store/name.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

#define MAX_FILES 1000000

typedef ARRAY(char *) names;

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(int dir_fd, uint64_t since, names *ret)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = d ? 0 : -errno;

	while (d && r == 0 && (entry = readdir(d))) {
		uint64_t time;
		uint32_t sum;
		char **item;

		if (!store_parse_name(entry->d_name, &time, &sum) || time < since)
			continue;
		item = array_push(ret);
		if (item)
			*item = strdup(entry->d_name);
		r = item && *item ? 0 : -ENOMEM;
	}
	if (d)
		(void)closedir(d);
	else
		(void)close_fd(fd);
	if (ret->n)
		qsort(ret->items, ret->n, sizeof(*ret->items), by_name);
	return r;
}

static int copy(int out, int in, uint64_t n)
{
	char buf[65536];

	while (n > 0) {
		ssize_t got = read(in, buf, n < sizeof(buf) ? n : sizeof(buf));

		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		if (write(out, buf, (size_t)got) != got)
			return -errno;
		n -= (uint64_t)got;
	}
	return 0;
}

/* A file that the daemon removes meanwhile is skipped. The directory belongs to an unprivileged
 * user, so opening something that is not a file must not block us. */
static int call(int dir_fd, const char *name,
		int (*fn)(void *ctx, const char *name, int fd, uint64_t bytes), void *ctx)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	return fn(ctx, name, fd, (uint64_t)st.st_size);
}

int stored_each(const char *path, uint64_t since_unix_ns,
		int (*fn)(void *ctx, const char *name, int fd, uint64_t bytes), void *ctx,
		uint32_t *ret_n)
{
	_cleanup_close_ int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	names files = ARRAY_INIT(MAX_FILES);
	int r;

	if (dir_fd < 0)
		return -errno;
	r = list(dir_fd, since_unix_ns, &files);
	for (uint32_t i = 0; i < files.n; i++) {
		if (r == 0)
			r = call(dir_fd, files.items[i], fn, ctx);
		free(files.items[i]);
	}
	*ret_n = files.n;
	array_deinit(&files);
	return r;
}

struct appending {
	int out;
	uint64_t room;
};

static int append(void *ctx, const char *name, int fd, uint64_t bytes)
{
	struct appending *a = ctx;
	uint32_t length;

	if (bytes > a->room || bytes > INT32_MAX)
		return -EFBIG;
	a->room -= bytes;
	length = htobe32((uint32_t)bytes);
	if (write(a->out, &length, sizeof(length)) != sizeof(length))
		return -errno;
	return copy(a->out, fd, bytes);
}

int stored_open(const char *path, uint64_t since_unix_ns, uint64_t max_bytes, uint32_t *ret_n)
{
	_cleanup_close_ int out = memory_file_new("perfwalk-stored");
	struct appending a = {out, max_bytes};
	int r = out < 0 ? out : stored_each(path, since_unix_ns, append, &a, ret_n);

	if (r == 0 && *ret_n == 0)
		r = -ENOENT;
	return r < 0 ? r : TAKE_FD(out);
}

bool stored_in_use(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* As src/opener/state-dir.c locks it. */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}
