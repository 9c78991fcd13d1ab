/* SPDX-License-Identifier: Apache-2.0 */
#include "src/fetcher/debug-cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk-reserve.h"
#include "util/text.h"

#define NAME_BYTES  (DEBUG_ID_HEX_MAX + 32)
#define MAX_ENTRIES 65536
#define MAX_MISSING 4096

struct cached_file {
	char name[NAME_BYTES];
	uint64_t time_ns, n_bytes;
};

const char *debug_id_hex(const struct debug_id *id, char buf[DEBUG_ID_HEX_MAX])
{
	text_format_hex(buf, id->bytes, id->n);
	return buf;
}

static const char *file_name(char name[NAME_BYTES], const struct debug_id *id, const char *suffix)
{
	char hex[DEBUG_ID_HEX_MAX];

	(void)snprintf(name, NAME_BYTES, "%s%s", debug_id_hex(id, hex), suffix);
	return name;
}

static const char *part_name(char name[NAME_BYTES], const struct debug_id *id)
{
	char suffix[24];

	(void)snprintf(suffix, sizeof(suffix), ".%d.part", (int)getpid());
	return file_name(name, id, suffix);
}

static uint64_t age_ns(uint64_t time_ns)
{
	uint64_t now = clock_realtime_ns();

	return now > time_ns ? now - time_ns : 0;
}

static uint64_t time_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
}

/* The broker opens the files and cannot record that here; the file system does, usually to the
 * day. */
static uint64_t last_use_ns(const struct stat *st)
{
	uint64_t read = time_ns(&st->st_atim), written = time_ns(&st->st_mtim);

	return read > written ? read : written;
}

enum debug_cache_answer debug_cache_find(const struct debug_cache *c, const struct debug_id *id)
{
	char name[NAME_BYTES];
	struct stat st;

	if (fstatat(c->dir_fd, file_name(name, id, ".debug"), &st, AT_SYMLINK_NOFOLLOW) == 0)
		return DEBUG_CACHE_FOUND;
	if (fstatat(c->dir_fd, file_name(name, id, ".missing"), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    age_ns(time_ns(&st.st_mtim)) < c->missing_ns)
		return DEBUG_CACHE_MISSING;
	return DEBUG_CACHE_UNKNOWN;
}

int debug_cache_begin(const struct debug_cache *c, const struct debug_id *id)
{
	char name[NAME_BYTES];
	_cleanup_close_ int fd = -EBADF;
	int r = disk_reserve_check(c->dir_fd, 0);

	if (r < 0)
		return r;
	fd = openat(c->dir_fd, part_name(name, id),
		    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* A lock means that somebody is still writing it. */
	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : TAKE_FD(fd);
}

void debug_cache_abandon(const struct debug_cache *c, const struct debug_id *id)
{
	char name[NAME_BYTES];

	(void)unlinkat(c->dir_fd, part_name(name, id), 0);
}

int debug_cache_commit(struct debug_cache *c, const struct debug_id *id, int fd)
{
	char part[NAME_BYTES], name[NAME_BYTES];

	/* The name must not be on disk before the contents. */
	if (fdatasync(fd) < 0 || renameat(c->dir_fd, part_name(part, id), c->dir_fd,
					  file_name(name, id, ".debug")) < 0) {
		int r = -errno;

		debug_cache_abandon(c, id);
		return r;
	}
	(void)unlinkat(c->dir_fd, file_name(name, id, ".missing"), 0);
	debug_cache_trim(c);
	return 0;
}

int debug_cache_put_missing(struct debug_cache *c, const struct debug_id *id)
{
	char name[NAME_BYTES];
	_cleanup_close_ int fd = openat(c->dir_fd, file_name(name, id, ".missing"),
					O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || futimens(fd, NULL) < 0)
		return -errno;
	debug_cache_trim(c);
	return 0;
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

static int by_time(const void *a, const void *b)
{
	const struct cached_file *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static bool is_abandoned(const struct debug_cache *c, const char *name)
{
	_cleanup_close_ int fd =
		openat(c->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* False: not one of ours, or gone. */
static bool read_entry(const struct debug_cache *c, const char *name, struct cached_file *ret)
{
	bool part = ends_in(name, ".part"), missing = ends_in(name, ".missing");
	struct stat st;

	if ((!part && !missing && !ends_in(name, ".debug")) || strlen(name) >= NAME_BYTES ||
	    fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (missing ? age_ns(time_ns(&st.st_mtim)) >= c->missing_ns
		    : part && is_abandoned(c, name)) {
		(void)unlinkat(c->dir_fd, name, 0);
		return false;
	}
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->time_ns = part ? UINT64_MAX : last_use_ns(&st); /* evicted last */
	ret->n_bytes = (uint64_t)st.st_size;
	return true;
}

static void sort(struct cached_file *items, uint32_t n)
{
	if (n)
		qsort(items, n, sizeof(*items), by_time);
}

/* Each unknown build id of a container adds one, an inode that nobody needs. */
static void trim_missing(const struct debug_cache *c, struct cached_file *items, uint32_t n)
{
	sort(items, n);
	for (uint32_t i = 0; n > MAX_MISSING && i < n - MAX_MISSING; i++)
		(void)unlinkat(c->dir_fd, items[i].name, 0);
}

static void trim_files(struct debug_cache *c, struct cached_file *items, uint32_t n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += items[i].n_bytes;
	sort(items, n);
	for (uint32_t i = 0; i < n && total > c->max_bytes; i++) {
		if (ends_in(items[i].name, ".part"))
			break;
		if (unlinkat(c->dir_fd, items[i].name, 0) == 0)
			c->n_evicted++;
		total -= items[i].n_bytes;
	}
}

void debug_cache_trim(struct debug_cache *c)
{
	ARRAY(struct cached_file)
	files = ARRAY_INIT(MAX_ENTRIES), missing = ARRAY_INIT(MAX_ENTRIES);
	int fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *next;

	if (!d) {
		(void)close_fd(fd);
		return;
	}
	while ((next = readdir(d))) {
		struct cached_file found, *e = NULL;

		if (read_entry(c, next->d_name, &found))
			e = ends_in(found.name, ".missing") ? array_push(&missing)
							    : array_push(&files);
		if (e)
			*e = found;
	}
	(void)closedir(d);
	trim_files(c, files.items, files.n);
	trim_missing(c, missing.items, missing.n);
	array_deinit(&files);
	array_deinit(&missing);
}
