/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/process/ask.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* The broker says itself that a file cannot be had in time, and waits for 5 s for an opener that
 * gets no CPU (src/opener/helper.c). Who leaves before has no names on a slow machine. */
#define DEADLINE_NS (6 * NSEC_PER_SEC)

/* Receives an answer; drops late answers to earlier requests. */
static int receive(struct ask *a, struct message *m, int *ret_fd)
{
	for (;;) {
		int fds[2], r = message_recv(a->sock, m, fds, MSG_DONTWAIT);

		if (r <= 0)
			return r == 0 ? -ECONNRESET : r;
		(void)close_fd(fds[1]);
		a->stuck = false;
		if (m->seq == a->seq) {
			*ret_fd = fds[0];
			return 0;
		}
		(void)close_fd(fds[0]);
	}
}

/* 0 and *ret_fd (owned, -1: none), or -errno; the answer's own error is in its body. */
static int exchange(struct ask *a, struct message *m, int *ret_fd)
{
	uint32_t want = m->type == MESSAGE_ASK_PROCESS	     ? MESSAGE_ANSWER_PROCESS
			: m->type == MESSAGE_ASK_USER	     ? MESSAGE_ANSWER_USER
			: m->type == MESSAGE_ASK_STATISTICS  ? MESSAGE_ANSWER_STATISTICS
			: m->type == MESSAGE_ASK_CGROUP_PATH ? MESSAGE_ANSWER_TEXT
							     : MESSAGE_ANSWER;
	uint64_t deadline;
	int r, fd = -1;

	if (a->stuck) {
		struct message late;

		(void)receive(a, &late, &fd);
		(void)close_fd(fd);
		if (a->stuck)
			return -ETIMEDOUT;
	}
	a->n_asked++;
	m->seq = ++a->seq;
	r = message_send(a->sock, m, NULL, 0);
	if (r < 0)
		return r;
	deadline = clock_monotonic_ns() + DEADLINE_NS;
	do {
		struct pollfd p = {.fd = a->sock, .events = POLLIN};
		uint64_t now = clock_monotonic_ns();

		if (now >= deadline ||
		    (poll(&p, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1) < 0 &&
		     errno != EINTR)) {
			a->stuck = true;
			a->n_timeouts++;
			return -ETIMEDOUT;
		}
		r = receive(a, m, &fd);
	} while (r == -EAGAIN);
	if (r == 0 && m->type != want) {
		(void)close_fd(fd);
		return -EBADMSG;
	}
	if (r == 0)
		*ret_fd = fd;
	return r;
}

int ask_descriptor(struct ask *a, struct message *m)
{
	int fd = -1, r = exchange(a, m, &fd);

	if (r < 0)
		return r;
	if (m->answer.error < 0 || fd < 0) {
		(void)close_fd(fd);
		return m->answer.error < 0 ? m->answer.error : -EBADMSG;
	}
	return fd;
}

int ask_values(struct ask *a, struct message *m)
{
	int fd = -1, r = exchange(a, m, &fd);

	(void)close_fd(fd);
	return r < 0 ? r : m->answer.error < 0 ? m->answer.error : 0;
}
