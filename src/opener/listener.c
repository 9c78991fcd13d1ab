/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/opener/listener.h"
#include "util/cleanup.h"
#include "util/log.h"

#define BACKLOG 16

static int say(char *error, size_t n_error, const char *what, int r)
{
	(void)snprintf(error, n_error, "%s: %s", what, strerror(-r));
	return r;
}

static int remove_stale(const struct sockaddr_un *address)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
		return -EADDRINUSE;
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int make_directory(const char *path)
{
	char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path)], *slash;

	(void)snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = '\0';
	if (mkdir(directory, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	/* Everybody may pass, whatever the umask is: the mode of the socket decides. */
	return chmod(directory, 0755) < 0 ? -errno : 0;
}

static int bind_path(struct listener *l, gid_t gid, char *error, size_t n_error)
{
	struct sockaddr_un un;
	mode_t mask;
	int r;

	memcpy(&un, &l->address.sa, sizeof(un));
	if ((r = make_directory(un.sun_path)) < 0)
		return say(error, n_error, "its directory cannot be created", r);
	r = remove_stale(&un);
	if (r == -EADDRINUSE)
		return say(error, n_error, "another daemon listens there", r);
	if (r < 0)
		return say(error, n_error, "another file is in its place", r);
	mask = umask(0177);
	r = bind(l->fd, (const struct sockaddr *)&un, sizeof(un)) < 0 ? -errno : 0;
	(void)umask(mask);
	if (r < 0)
		return say(error, n_error, "it cannot be created", r);
	l->bound = true;
	if (gid != (gid_t)-1 &&
	    (lchown(un.sun_path, (uid_t)-1, gid) < 0 || chmod(un.sun_path, 0660) < 0))
		log_debug("%s is for root only: %s", un.sun_path, strerror(errno));
	return 0;
}

static int bind_port(const struct listener *l, char *error, size_t n_error)
{
	int on = 1, r;

	/* A daemon that has just exited may have used the port. */
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	r = bind(l->fd, (const struct sockaddr *)&l->address.sa, l->address.n) < 0 ? -errno : 0;
	return r < 0 ? say(error, n_error, "listening on it fails", r) : 0;
}

int listener_open(struct listener *ret, const struct address *address, gid_t gid, char *error,
		  size_t n_error)
{
	struct listener l = {.address = *address};
	int r;

	l.fd = socket(address->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l.fd < 0)
		return say(error, n_error, "socket", -errno);
	r = address->sa.ss_family == AF_UNIX ? bind_path(&l, gid, error, n_error)
					     : bind_port(&l, error, n_error);
	if (r == 0 && listen(l.fd, BACKLOG) < 0)
		r = say(error, n_error, "listen", -errno);
	if (r < 0) {
		listener_close(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void listener_close(struct listener *l)
{
	struct sockaddr_un un;

	l->fd = close_fd(l->fd);
	if (!l->bound)
		return;
	l->bound = false;
	memcpy(&un, &l->address.sa, sizeof(un));
	(void)unlink(un.sun_path);
}
