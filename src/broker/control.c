/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/control.h"
#include "src/opener/listener.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define MAX_CLIENTS  8
#define MAX_GROUPS   1024
#define POLL_NS	     (20 * NSEC_PER_MSEC)
#define MAX_WAIT_NS  (30 * NSEC_PER_SEC)
#define MAX_READ_NS  (2 * NSEC_PER_SEC)
#define ANSWER_BYTES (256 << 10) /* room in the socket for the longest answer */

struct client {
	int fd; /* -EBADF: free */
	char line[CONTROL_LINE_MAX];
	size_t n;
	bool is_running, begun;
	uint64_t deadline_ns;
};

struct control {
	struct loop *loop;
	struct control_callbacks callbacks;
	uid_t uid;
	gid_t gid;
	int timer;
	struct listener listener;
	struct client clients[MAX_CLIENTS];
};

/* The number alone proves nothing: a daemon that was killed no longer holds the lock. */
int control_lock(const char *path, pid_t *ret_pid)
{
	char name[PATH_MAX], text[24] = "", *slash;
	_cleanup_close_ int fd = -EBADF;
	int n;

	if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	slash = strrchr(name, '/');
	if (slash && slash > name) {
		*slash = '\0';
		(void)mkdir(name, 0755);
		*slash = '/';
	}
	/* Nobody else may open it: who can, can hold it. */
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int e = -errno;

		if (e == -EWOULDBLOCK)
			*ret_pid = pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
		return e;
	}
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return -EIO;
	return TAKE_FD(fd);
}

static int say(char *error, size_t n_error, const char *what, int r)
{
	(void)snprintf(error, n_error, "%s: %s", what, strerror(-r));
	return r;
}

static void end_client(struct control *c, struct client *client)
{
	loop_remove_fd(c->loop, client->fd);
	client->fd = close_fd(client->fd);
	*client = (struct client){.fd = -EBADF};
}

static bool is_member(int fd, gid_t gid)
{
	_cleanup_free_ gid_t *groups = calloc(MAX_GROUPS, sizeof(*groups));
	socklen_t n = MAX_GROUPS * sizeof(*groups);

	/* Linux 4.13; where it is not known only the first group counts. */
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0)
		return false;
	for (size_t i = 0; i < n / sizeof(*groups); i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}

static bool is_allowed(const struct control *c, int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	return peer.uid != c->uid && c->gid != (gid_t)-1 &&
	       (peer.gid == c->gid || is_member(fd, c->gid));
}

static void answer(struct control *c, struct client *client, const char *text, size_t n, int r,
		   const char *error)
{
	char last[256];
	int m = snprintf(last, sizeof(last), "%s%s\n", r < 0 ? "error: " : "ok",
			 r < 0 ? error : "");

	if ((n && send(client->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n) ||
	    send(client->fd, last, (size_t)m < sizeof(last) ? (size_t)m : sizeof(last) - 1,
		 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("a client of the control socket does not read its answer");
	end_client(c, client);
}

static void run_command(struct control *c, struct client *client)
{
	char error[200] = "", *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r;

	if (!f) {
		end_client(c, client);
		return;
	}
	r = c->callbacks.command(c->callbacks.ctx, client->line, &client->begun, f, error,
				 sizeof(error));
	(void)fclose(f);
	client->is_running = true;
	if (r > 0 && clock_monotonic_ns() < client->deadline_ns) {
		loop_set_timer(c->loop, c->timer, POLL_NS);
	} else {
		if (r > 0)
			(void)snprintf(error, sizeof(error), "timed out");
		answer(c, client, text, n, r > 0 ? -ETIMEDOUT : r, error);
	}
	free(text);
}

static void read_line(struct control *c, struct client *client)
{
	ssize_t n;
	char *end;

	n = recv(client->fd, client->line + client->n, sizeof(client->line) - 1 - client->n,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* It has gone, or says more than a command. */
	if (n <= 0 || client->is_running) {
		end_client(c, client);
		return;
	}
	client->n += (size_t)n;
	client->line[client->n] = '\0';
	end = strchr(client->line, '\n');
	if (!end && client->n < sizeof(client->line) - 1)
		return;
	if (!end) {
		answer(c, client, NULL, 0, -EINVAL, "the line is too long");
		return;
	}
	*end = '\0';
	client->deadline_ns = clock_monotonic_ns() + MAX_WAIT_NS;
	run_command(c, client);
}

static void on_client(void *ctx, int fd, uint32_t events)
{
	struct control *c = ctx;

	for (size_t i = 0; i < MAX_CLIENTS; i++) {
		if (c->clients[i].fd == fd) {
			read_line(c, &c->clients[i]);
			return;
		}
	}
}

/* Its time is up. It may have spoken while the broker did other work. */
static void end_silent(struct control *c, struct client *client)
{
	read_line(c, client);
	if (client->fd >= 0 && !client->is_running)
		end_client(c, client);
}

static void on_connection(void *ctx, int fd, uint32_t events)
{
	struct control *c = ctx;
	_cleanup_close_ int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int bytes = ANSWER_BYTES;

	if (client_fd < 0)
		return;
	if (!is_allowed(c, client_fd)) {
		static const char refusal[] = "error: not permitted: run as root, or as a member "
					      "of the group that perfwalk's processes run as\n";

		(void)send(client_fd, refusal, strlen(refusal), MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	(void)setsockopt(client_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	for (size_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (client->fd >= 0 || loop_add_fd(c->loop, client_fd, EPOLLIN, on_client, c) < 0)
			continue;
		client->fd = TAKE_FD(client_fd);
		client->deadline_ns = clock_monotonic_ns() + MAX_READ_NS;
		loop_set_timer(c->loop, c->timer, POLL_NS);
		return;
	}
}

static void on_timer(void *ctx)
{
	struct control *c = ctx;
	bool more = false;

	for (size_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (client->fd < 0)
			continue;
		if (client->is_running)
			run_command(c, client);
		else if (clock_monotonic_ns() >= client->deadline_ns)
			end_silent(c, client);
		more |= client->fd >= 0;
	}
	loop_set_timer(c->loop, c->timer, more ? POLL_NS : UINT64_MAX);
}

int control_new(struct control **ret, struct loop *loop, const char *path, uid_t uid, gid_t gid,
		const struct control_callbacks *callbacks, char *error, size_t n_error)
{
	_cleanup_(control_freep) struct control *c = calloc(1, sizeof(*c));
	struct address address;
	char text[PATH_MAX];
	int r;

	if (!c)
		return say(error, n_error, "control socket", -ENOMEM);
	c->loop = loop;
	c->callbacks = *callbacks;
	c->uid = uid;
	c->gid = gid;
	c->listener.fd = -EBADF;
	for (size_t i = 0; i < MAX_CLIENTS; i++)
		c->clients[i].fd = -EBADF;
	(void)snprintf(text, sizeof(text), "unix:%s", path);
	r = address_parse(text, &address);
	if (r < 0) {
		(void)snprintf(error, n_error, "the path is too long for a socket");
		return r;
	}
	r = listener_open(&c->listener, &address, gid, error, n_error);
	if (r < 0)
		return r;
	if ((r = c->timer = loop_add_timer(loop, UINT64_MAX, 0, on_timer, c)) < 0 ||
	    (r = loop_add_fd(loop, c->listener.fd, EPOLLIN, on_connection, c)) < 0)
		return say(error, n_error, "control socket", r);
	*ret = TAKE_PTR(c);
	return 0;
}

struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < MAX_CLIENTS; i++) {
		if (c->clients[i].fd >= 0)
			end_client(c, &c->clients[i]);
	}
	if (c->listener.fd >= 0)
		loop_remove_fd(c->loop, c->listener.fd);
	listener_close(&c->listener);
	free(c);
	return NULL;
}
