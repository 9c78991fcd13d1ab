/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a client writes to the daemon's control socket, in two pieces (the first
 * byte says where the second begins), over a real socket and loop. A command that comes out of it
 * is a line of a bounded length; every client gets one answer, or is let go.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/broker/control.h"
#include "tests/fuzz/input.h"
#include "util/loop.h"

static const char *home;
static char socket_path[64];

struct client {
	struct loop *loop;
	int fd;
	const uint8_t *first, *rest; /* what it writes */
	size_t n_first, n_rest;
	char answer[4096];
	size_t n_answer;
};

static void clean_up(void)
{
	(void)rmdir(home);
}

static int on_command(void *ctx, const char *line, bool *begun, FILE *answer, char *error,
		      size_t n_error)
{
	if (strlen(line) >= CONTROL_LINE_MAX || strchr(line, '\n'))
		abort();
	(void)fprintf(answer, "length %zu\n", strlen(line));
	if (*line == 'e') {
		(void)snprintf(error, n_error, "no command \"%s\"", line);
		return -22;
	}
	return 0;
}

static void on_readable(void *ctx, int fd, uint32_t events)
{
	struct client *c = ctx;
	ssize_t n = recv(fd, c->answer + c->n_answer, sizeof(c->answer) - c->n_answer - 1,
			 MSG_DONTWAIT);

	if (n > 0) {
		c->n_answer += (size_t)n;
		return;
	}
	loop_exit(c->loop, 0);
}

/* The second piece, once the first one has been read. */
static void on_timer(void *ctx)
{
	struct client *c = ctx;

	if (c->n_rest)
		(void)send(c->fd, c->rest, c->n_rest, MSG_NOSIGNAL);
	(void)shutdown(c->fd, SHUT_WR);
}

static int connect_client(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		abort();
	return fd;
}

static void run(struct client *c)
{
	const struct control_callbacks callbacks = {.command = on_command};
	_cleanup_(control_freep) struct control *control = NULL;
	char error[256];

	if (control_new(&control, c->loop, socket_path, (uid_t)-1, (gid_t)-1, &callbacks, error,
			sizeof(error)) < 0)
		abort();
	c->fd = connect_client();
	if ((c->n_first && send(c->fd, c->first, c->n_first, MSG_NOSIGNAL) < 0) ||
	    loop_add_fd(c->loop, c->fd, EPOLLIN, on_readable, c) < 0 ||
	    loop_add_timer(c->loop, 200 * 1000, 0, on_timer, c) < 0)
		abort();
	(void)loop_run(c->loop);
	loop_remove_fd(c->loop, c->fd);
	(void)close(c->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct client c = {0};

	if (n < 1 || n > 8192)
		return 0;
	if (!*socket_path) {
		home = input_directory();
		if (atexit(clean_up))
			abort();
		(void)snprintf(socket_path, sizeof(socket_path), "%s/socket", home);
	}
	if (loop_new(&loop) < 0)
		abort();
	c.loop = loop;
	c.first = data + 1;
	c.n_first = data[0] < n - 1 ? data[0] : n - 1;
	c.rest = c.first + c.n_first;
	c.n_rest = n - 1 - c.n_first;
	run(&c);
	/* Whole lines, unless it hung up on us. */
	if (c.n_answer && c.answer[c.n_answer - 1] != '\n')
		abort();
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 1 /* the cut stays */, 8, 30);
}
#endif
