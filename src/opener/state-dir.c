/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/opener/state-dir.h"
#include "util/cleanup.h"

#define LOCK_TRIES    20
#define LOCK_PAUSE_US 50000

static int say(char *error, size_t n_error, int r, const char *what)
{
	(void)snprintf(error, n_error, "%s: %s", what, strerror(-r));
	return r;
}

/* Makes the parents with access for all, as far as the umask allows. */
static int make_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		int r;

		*p = '\0';
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*p = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;

	if (!d) {
		(void)close_fd(copy);
		return 0;
	}
	while (n <= 2 && readdir(d))
		n++;
	(void)closedir(d);
	return n <= 2; /* . and .. */
}

/*
 * Only files of the former owner get the new owner: opening, checking and changing a file use one
 * descriptor, so names do not matter. true: all files have the new owner.
 */
static bool give_files(int directory, uint32_t former, uint32_t uid, uint32_t gid)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *e;
	bool all = d != NULL;

	while (d && (e = readdir(d))) {
		_cleanup_close_ int fd = openat(directory, e->d_name,
						O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			all &= fd < 0 && errno != EACCES;
		else if (S_ISREG(st.st_mode) && st.st_uid == former && st.st_nlink == 1)
			all &= fchown(fd, uid, gid) == 0;
	}
	if (d)
		(void)closedir(d);
	else
		(void)close_fd(copy);
	return all;
}

/*
 * A directory of root changes its owner only if it is empty: a path like /var/lib, set by mistake,
 * must not become perfwalk's. But what systemd made for the service it gives to root, with all that
 * is in it, when the service no longer runs as another user.
 */
static int own(int fd, const struct state_owner *owner, char *error, size_t n_error)
{
	uint32_t uid = owner->uid == (uint32_t)-1 ? geteuid() : owner->uid;
	uint32_t gid = owner->gid;
	struct stat st;
	bool former;

	if (fstat(fd, &st) < 0)
		return say(error, n_error, -errno, "it cannot be examined");
	former = st.st_uid != uid &&
		 ((owner->former != (uint32_t)-1 && st.st_uid == owner->former) ||
		  (owner->of_service && st.st_uid == 0));
	if (st.st_uid != uid && !former && (st.st_uid != geteuid() || !is_empty(fd))) {
		(void)snprintf(error, n_error,
			       "it belongs to user %u and not to user %u, or has files of others "
			       "in it; set another directory, or chown -R %u this one",
			       (unsigned int)st.st_uid, uid, uid);
		return -EPERM;
	}
	if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		return say(error, n_error, -errno, "its mode cannot be set to 0700");
	/* The directory comes last, so that an unfinished change is repeated. */
	if (former && !give_files(fd, st.st_uid, uid, gid))
		return say(error, n_error, -EPERM,
			   "files in it cannot be given to perfwalk's user; chown -R it");
	if (st.st_uid != uid && fchown(fd, uid, gid) < 0)
		return say(error, n_error, -errno,
			   "it cannot be given to perfwalk's user (that needs CAP_CHOWN)");
	return 0;
}

/* The children of a killed broker die a moment after it, and have copies of its lock. */
static int lock(int fd, bool shared)
{
	for (int i = 0; flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return -errno;
		(void)usleep(LOCK_PAUSE_US);
	}
	return 0;
}

int state_dir_open(const char *path, const struct state_owner *owner, bool shared, char *error,
		   size_t n_error)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (!copy)
		return say(error, n_error, -ENOMEM, "it cannot be created");
	/* A symbolic link with a slash after it would be followed. */
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/';)
		copy[--n] = '\0';
	r = make_parents(copy);
	if (r == 0 && mkdir(copy, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r < 0)
		return say(error, n_error, r, "it cannot be created");
	fd = open(copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return say(error, n_error, -errno, "it cannot be opened");
	r = own(fd, owner, error, n_error);
	if (r < 0)
		return r;
	r = lock(fd, shared);
	if (r == -EWOULDBLOCK) {
		(void)snprintf(error, n_error, "another perfwalk uses it");
		return r;
	}
	if (r < 0)
		return say(error, n_error, r, "it cannot be locked");
	return TAKE_FD(fd);
}
