/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each file is written under another name, flushed, renamed and its directory flushed: it is
 * complete or absent, whatever happens to the process or the machine. The directory is read once;
 * from then on a list in memory knows it.
 */
#include "src/exporter/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "src/exporter/payload.h"
#include "src/store/name.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"

#define MAX_FILES   1000000
#define TEMPORARY   "new.tmp"
#define SAME_LOOKED 64 /* files looked at for one that is handed over again */

struct store_file {
	uint64_t time_unix_ns, n_bytes;
	uint32_t sum;
};

struct store {
	int dir_fd;
	char *path;
	struct store_limits limits;
	ARRAY(struct store_file) files; /* by time; those before first are gone */
	uint32_t first;
	uint64_t n_bytes;
	bool failing;	 /* said so */
	uint64_t n_lost; /* samples since then */
	uint64_t n_lost_ever;
};

static bool parse_name(const char *name, struct store_file *ret)
{
	return store_parse_name(name, &ret->time_unix_ns, &ret->sum);
}

static const char *file_name(char name[STORE_NAME_MAX], const struct store_file *f)
{
	return store_format_name(name, f->time_unix_ns, f->sum);
}

static int by_time(const void *a, const void *b)
{
	const struct store_file *x = a, *y = b;

	return x->time_unix_ns < y->time_unix_ns ? -1 : x->time_unix_ns > y->time_unix_ns;
}

static int list_read(struct store *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		int r = -errno;

		(void)close_fd(fd);
		return r;
	}
	while ((entry = readdir(d))) {
		struct store_file f, *item;
		struct stat st;

		if (!parse_name(entry->d_name, &f) ||
		    fstatat(s->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.n_bytes = (uint64_t)st.st_size;
		item = array_push(&s->files);
		if (!item)
			break;
		*item = f;
		s->n_bytes += f.n_bytes;
	}
	(void)closedir(d);
	if (s->files.n)
		qsort(s->files.items, s->files.n, sizeof(*s->files.items), by_time);
	return 0;
}

int store_open(struct store **ret, int dir_fd, const char *path, const struct store_limits *limits)
{
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		(void)close_fd(dir_fd);
		return -ENOMEM;
	}
	s->dir_fd = dir_fd;
	s->limits = *limits;
	s->files.max = MAX_FILES;
	s->path = strdup(path);
	(void)unlinkat(dir_fd, TEMPORARY, 0);
	r = s->path ? list_read(s) : -ENOMEM;
	if (r < 0) {
		store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct store *store_free(struct store *s)
{
	if (s) {
		(void)close_fd(s->dir_fd);
		array_deinit(&s->files);
		free(s->path);
		free(s);
	}
	return NULL;
}

static void remove_first(struct store *s)
{
	const struct store_file *f = &s->files.items[s->first++];
	char name[STORE_NAME_MAX];

	(void)unlinkat(s->dir_fd, file_name(name, f), 0);
	s->n_bytes -= f->n_bytes;
	/* The list is moved down now and then, not each time. */
	if (s->first > 1024 && s->first > s->files.n / 2) {
		memmove(s->files.items, s->files.items + s->first,
			(s->files.n - s->first) * sizeof(*s->files.items));
		s->files.n -= s->first;
		s->first = 0;
	}
}

static void trim(struct store *s, uint64_t now, uint64_t room)
{
	while (s->first < s->files.n &&
	       (s->n_bytes + room > s->limits.max_bytes ||
		(s->limits.max_age_ns && s->files.items[s->first].time_unix_ns < now &&
		 now - s->files.items[s->first].time_unix_ns > s->limits.max_age_ns) ||
		s->files.n - s->first >= MAX_FILES - 1))
		remove_first(s);
}

static int write_all(int fd, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		ssize_t r = write(fd, bytes, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		bytes += r;
		n -= (size_t)r;
	}
	return 0;
}

/* Of a file, one after the other. NULL, 0: there is none. */
struct store_part {
	const uint8_t *bytes;
	size_t n;
};

static int write_file(const struct store *s, const struct store_file *f,
		      const struct store_part parts[2])
{
	char name[STORE_NAME_MAX];
	int fd = openat(s->dir_fd, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	int r = fd < 0 ? -errno : write_all(fd, parts[0].bytes, parts[0].n);

	if (r == 0)
		r = write_all(fd, parts[1].bytes, parts[1].n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	(void)close_fd(fd);
	if (r == 0 && renameat(s->dir_fd, TEMPORARY, s->dir_fd, file_name(name, f)) < 0)
		r = -errno;
	if (r == 0 && fsync(s->dir_fd) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(s->dir_fd, TEMPORARY, 0);
	return r;
}

static bool is_there(const struct store *s, const struct store_file *f)
{
	for (uint32_t i = s->files.n, n = 0; i-- > s->first && n < SAME_LOOKED; n++)
		if (s->files.items[i].sum == f->sum && s->files.items[i].n_bytes == f->n_bytes)
			return true;
	return false;
}

/* more is a second member of the gzip file. NULL: there is none. */
static int keep(struct store *s, const struct payload *p, const struct payload *more)
{
	struct store_file f = {.time_unix_ns = clock_realtime_ns()}, *item;
	struct store_part parts[2] = {{NULL, 0}};
	int r;

	parts[0].bytes = payload_body(p, ENCODING_GZIP, &parts[0].n);
	if (more)
		parts[1].bytes = payload_body(more, ENCODING_GZIP, &parts[1].n);
	f.n_bytes = parts[0].n + parts[1].n;
	f.sum = (uint32_t)crc32(0, parts[0].bytes, (uInt)parts[0].n);
	if (is_there(s, &f))
		return 0;
	/* A clock that was set back does not change the order. */
	if (s->files.n > s->first && f.time_unix_ns <= s->files.items[s->files.n - 1].time_unix_ns)
		f.time_unix_ns = s->files.items[s->files.n - 1].time_unix_ns + 1;
	if (f.n_bytes > s->limits.max_bytes)
		return -EFBIG;
	trim(s, f.time_unix_ns, f.n_bytes);
	item = array_push(&s->files);
	if (!item)
		return -ENOMEM;
	*item = f;
	r = write_file(s, &f, parts);
	if (r < 0)
		s->files.n--;
	else
		s->n_bytes += f.n_bytes;
	return r;
}

int store_put(struct store *s, int fd, int more_fd, uint64_t n_samples)
{
	struct payload *p = NULL, *more = NULL;
	int r = payload_new(&p, fd, 1u << ENCODING_GZIP);

	if (r == 0 && more_fd >= 0)
		r = payload_new(&more, more_fd, 1u << ENCODING_GZIP);
	if (r == 0)
		r = keep(s, p, more);
	payload_free(p);
	payload_free(more);
	if (r < 0 && !s->failing)
		log_warning("store: %s: profiles are not kept: %s", s->path, strerror(-r));
	else if (r == 0 && s->failing)
		log_warning("store: %s: profiles are kept again; %llu samples were not", s->path,
			    (unsigned long long)s->n_lost);
	s->failing = r < 0;
	s->n_lost = r < 0 ? s->n_lost + n_samples : 0;
	s->n_lost_ever += r < 0 ? n_samples : 0;
	return r;
}

struct store_stats store_stats(const struct store *s)
{
	return (struct store_stats){s->files.n - s->first, s->n_bytes, s->n_lost_ever};
}
