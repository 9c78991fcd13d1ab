/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cmd/session.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/cleanup.h"

static int open_signals(const int *more)
{
	static const int always[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, 0};
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (const int *number = always; *number; number++)
		(void)sigaddset(&set, *number);
	for (const int *number = more; number && *number; number++)
		(void)sigaddset(&set, *number);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static void on_readable(void *ctx, int fd, uint32_t events)
{
	const struct session *s = ctx;
	struct signalfd_siginfo info;

	while (session_next_signal(s, &info))
		s->on_signal(s->ctx, &info);
}

int session_open(struct session *s, const int *more,
		 void (*on_signal)(void *ctx, const struct signalfd_siginfo *s), void *ctx)
{
	int r = loop_new(&s->loop);

	if (r < 0)
		return r;
	s->on_signal = on_signal;
	s->ctx = ctx;
	s->signal_fd = open_signals(more);
	if (s->signal_fd < 0)
		return s->signal_fd;
	return loop_add_fd(s->loop, s->signal_fd, EPOLLIN, on_readable, s);
}

int session_run(struct session *s)
{
	int r = loop_run(s->loop);

	return r < 0 ? r : s->result;
}

void session_end(void *session, int result)
{
	struct session *s = session;

	s->result = result;
	loop_exit(s->loop, 0);
}

bool session_next_signal(const struct session *s, struct signalfd_siginfo *ret)
{
	return read(s->signal_fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

void session_close(struct session *s)
{
	s->loop = loop_free(s->loop);
	s->signal_fd = close_fd(s->signal_fd);
}
