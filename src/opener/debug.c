/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files, first in the process's own root, then in the host's.
 *
 * A process controls all directories in its root. So the search does not leave that root and does
 * not cross into another mount, because the path could lead into a filesystem that never answers; a
 * root that is itself FUSE (rootless containers) is not searched. Before Linux 3.15 we cannot
 * detect mounts, and use only the host's files. Next to the program, where any file may be, no link
 * is followed at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/openat2.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/text.h"

#define DEBUG_DIRECTORY "/usr/lib/debug" /* the place of all distributions */
#define IN_ROOT		(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* Opens a regular file below root, which is a directory of process pid, or ours (0). */
static int open_below(uint32_t pid, int root, const char *path, uint64_t resolve)
{
	_cleanup_close_ int fd = opener_resolve(root, path, resolve);
	struct stat st;

	return fd < 0 ? fd : opener_check_contents(opener_reopen_regular(fd, &st), OPENER_ELF, pid);
}

/* Opens the root of a process; *ret_ours: it is our own. -1: no safe root. */
static int open_root(uint32_t pid, bool *ret_ours)
{
	_cleanup_close_ int root = -EBADF;
	struct stat theirs, ours;

	if (!pid || opener_root_blocks(pid))
		return -1;
	root = opener_open_proc(pid, "root", O_PATH | O_DIRECTORY);
	if (root < 0 || fstat(root, &theirs) < 0 || stat("/", &ours) < 0)
		return -1;
	*ret_ours = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
	return TAKE_FD(root);
}

static int debug_path(const uint8_t *build_id, size_t n, char *path, size_t size)
{
	char name[16 + 2 * 64];
	int r = opener_put_build_id(name, sizeof(name), build_id, n);

	if (r == 0)
		(void)snprintf(path, size, DEBUG_DIRECTORY "/%s.debug", name);
	return r;
}

static int open_in_root(uint32_t pid, int root, const uint8_t *build_id, size_t n, const char *path)
{
	char name[PROTOCOL_PATH_MAX + 32];
	int fd = -ENOENT;

	if (n > 0 && debug_path(build_id, n, name, sizeof(name)) == 0)
		fd = open_below(pid, root, name, IN_ROOT);
	if (fd >= 0 || !*path)
		return fd;
	(void)snprintf(name, sizeof(name), DEBUG_DIRECTORY "/%s", path);
	return open_below(pid, root, name, IN_ROOT);
}

/* A debuglink's file may also be next to the program, or in .debug there. The name must be that of
 * a debug file, so that no other files can be requested this way. */
static int open_beside(uint32_t pid, int root, const char *path)
{
	const char *name = strrchr(path, '/'), *suffix = strrchr(path, '.');
	char hidden[PROTOCOL_PATH_MAX + 32];
	int fd;

	if (path[0] != '/' || !suffix || strcmp(suffix, ".debug") != 0)
		return -ENOENT;
	(void)snprintf(hidden, sizeof(hidden), "%.*s/.debug%s", (int)(name - path), path, name);
	fd = open_below(pid, root, hidden, IN_ROOT | RESOLVE_NO_SYMLINKS);
	return fd >= 0 ? fd : open_below(pid, root, path, IN_ROOT | RESOLVE_NO_SYMLINKS);
}

/* Paths of a chrooted process's mappings begin with the path of its root. */
static const char *path_in_root(uint32_t pid, const char *path)
{
	char link[32], prefix[PROTOCOL_PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%u/root", pid);
	n = readlink(link, prefix, sizeof(prefix));
	if (n > 1 && strncmp(path, prefix, (size_t)n) == 0 && path[n] == '/')
		return path + n;
	return path;
}

static int open_hosts(const uint8_t *build_id, size_t n, const char *path)
{
	_cleanup_close_ int root = -EBADF, path_fd = -EBADF;
	char name[PROTOCOL_PATH_MAX + 32];
	struct stat st;
	int fd = -ENOENT;

	if (n > 0 && debug_path(build_id, n, name, sizeof(name)) == 0) {
		path_fd = open(name, O_PATH | O_CLOEXEC);
		fd = path_fd < 0 ? -errno
				 : opener_check_contents(opener_reopen_regular(path_fd, &st),
							 OPENER_ELF, 0);
	}
	if (fd >= 0 || !*path)
		return fd;
	root = open(DEBUG_DIRECTORY, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return open_below(0, root, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int opener_cached_debug_file(int dir, const uint8_t *build_id, size_t n)
{
	char name[2 * 64 + sizeof(".debug")];
	_cleanup_close_ int path_fd = -EBADF, fd = -EBADF;
	struct stat st, owner;

	if (n < 1 || n > 64)
		return -EINVAL;
	text_format_hex(name, build_id, n);
	(void)strcat(name, ".debug");
	path_fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0 || fstat(dir, &owner) < 0)
		return -errno;
	fd = opener_reopen_regular(path_fd, &st);
	if (fd >= 0 && (st.st_uid != owner.st_uid || st.st_nlink != 1))
		return -EACCES; /* a second name of a file that is not its own */
	return opener_check_contents(TAKE_FD(fd), OPENER_ELF | OPENER_ANYWHERE, 0);
}

int opener_debug_file(uint32_t pid, const uint8_t *build_id, size_t n, const char *path)
{
	_cleanup_close_ int root = -EBADF;
	bool ours = false;
	int fd = -ENOENT;

	if (n == 1 || n > 64 || (n == 0 && !*path) || opener_leads_up(path))
		return -EINVAL;
	root = open_root(pid, &ours);
	if (root >= 0 && !ours) {
		fd = open_in_root(pid, root, build_id, n, path_in_root(pid, path));
		if (fd < 0)
			fd = open_beside(pid, root, path_in_root(pid, path));
	}
	if (fd < 0)
		fd = open_hosts(build_id, n, path);
	if (fd < 0 && root >= 0 && ours)
		fd = open_beside(pid, root, path);
	return fd;
}
