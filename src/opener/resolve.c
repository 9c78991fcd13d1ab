/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves untrusted paths, or paths inside another root: with openat2(2) (Linux 5.6), or by hand
 * on older kernels. By hand each component is opened relative to the one before, the kernel follows
 * no link, and ".." returns to a descriptor that was kept on the way: so moving directories
 * meanwhile cannot lead us out of the root. The files themselves are not accessed, since their
 * filesystem may never answer; links and mounts can be recognized without that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

enum { MAX_DEPTH = 64, MAX_LINKS = 40 };

struct path_walk {
	int root;
	int held[MAX_DEPTH]; /* below root, outermost first */
	unsigned int n, n_links;
	uint64_t resolve;
	long mount;			  /* of root, if crossing mounts is forbidden */
	char rest[2 * PROTOCOL_PATH_MAX]; /* the rest of the path */
};

static int top(const struct path_walk *w)
{
	return w->n ? w->held[w->n - 1] : w->root;
}

static void pop(struct path_walk *w, unsigned int to)
{
	while (w->n > to)
		(void)close(w->held[--w->n]);
}

/* Takes the next component from rest, "." for a slash at the end; false: none, or (*error) too
 * long. */
static bool next_component(struct path_walk *w, char *ret, size_t size, int *error)
{
	size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");

	*error = n >= size ? -ENAMETOOLONG : 0;
	if (from + n == 0 || n >= size)
		return false;
	memcpy(ret, n ? w->rest + from : ".", n ? n : 1);
	ret[n ? n : 1] = '\0';
	memmove(w->rest, w->rest + from + n, strlen(w->rest + from + n) + 1);
	return true;
}

/* 1: not a link. Else puts the link's target before rest. */
static int follow(struct path_walk *w, int fd)
{
	char target[PROTOCOL_PATH_MAX], rest[sizeof(w->rest)];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	if (n < 0)
		return errno == EINVAL || errno == ENOENT ? 1 : -errno;
	if ((w->resolve & RESOLVE_NO_SYMLINKS) || ++w->n_links > MAX_LINKS)
		return -ELOOP;
	if ((size_t)n + strlen(w->rest) >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, w->rest, sizeof(rest));
	memcpy(w->rest, target, (size_t)n);
	memcpy(w->rest + n, rest, strlen(rest) + 1);
	if (n > 0 && target[0] == '/')
		pop(w, 0);
	return 0;
}

/* Only directories have "." and "..". */
static int step_to_dots(struct path_walk *w, const char *component)
{
	int fd = openat(top(w), ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)close(fd);
	if (component[1])
		pop(w, w->n ? w->n - 1 : 0);
	return 0;
}

/* May everybody search it? What is no directory has no entries to be found. */
static bool is_public(int fd)
{
	struct stat st;

	return opener_stat_cached(fd, &st) == 0 && (!S_ISDIR(st.st_mode) || (st.st_mode & S_IXOTH));
}

static int step(struct path_walk *w, const char *component)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if ((w->resolve & OPENER_PUBLIC) && !is_public(top(w)))
		return -EACCES;
	if (strcmp(component, ".") == 0 || strcmp(component, "..") == 0)
		return step_to_dots(w, component);
	fd = openat(top(w), component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if ((w->resolve & RESOLVE_NO_XDEV) && (w->mount < 0 || opener_mount_id(fd) != w->mount))
		return -EXDEV;
	r = follow(w, fd);
	if (r <= 0)
		return r;
	if (w->n == MAX_DEPTH)
		return -ENAMETOOLONG;
	w->held[w->n++] = TAKE_FD(fd);
	return 0;
}

int opener_resolve_by_hand(int root, const char *path, uint64_t resolve)
{
	struct path_walk w = {.root = root, .resolve = resolve};
	char component[256];
	int r, fd;

	if (resolve & RESOLVE_NO_XDEV)
		w.mount = opener_mount_id(root);
	if (strlen(path) >= PROTOCOL_PATH_MAX)
		return -ENAMETOOLONG;
	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	while (next_component(&w, component, sizeof(component), &r) &&
	       (r = step(&w, component)) == 0)
		;
	fd = r < 0 ? r : fcntl(top(&w), F_DUPFD_CLOEXEC, 0);
	if (r == 0 && fd < 0)
		fd = -errno;
	pop(&w, 0);
	return fd;
}

int opener_resolve(int root, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	int fd;

	if (resolve & OPENER_PUBLIC)
		return opener_resolve_by_hand(root, path, resolve);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd >= 0)
		return fd;
	/* EPERM: an old seccomp filter without the call. */
	return errno == ENOSYS || errno == EPERM ? opener_resolve_by_hand(root, path, resolve)
						 : -errno;
}
