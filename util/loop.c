/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/loop.h"

#define MAX_TIMERS 16
#define MAX_EVENTS 32

struct loop_source {
	loop_fd_fn fn;
	void *ctx;
};

struct timer {
	uint64_t due_ns, interval_ns; /* due_ns UINT64_MAX: off */
	loop_timer_fn fn;
	void *ctx;
};

struct loop {
	int epoll_fd;
	bool exiting;
	int code;
	struct loop_source *sources; /* by descriptor, which RLIMIT_NOFILE limits */
	int n_sources;
	struct timer timers[MAX_TIMERS];
	int n_timers;
};

int loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int r = -errno;

		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct loop *loop_free(struct loop *l)
{
	if (l) {
		(void)close_fd(l->epoll_fd);
		free(l->sources);
		free(l);
	}
	return NULL;
}

int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *ctx)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (fd < 0)
		return -EBADF;
	if (fd >= l->n_sources) {
		int n = fd + 64;
		struct loop_source *p = realloc(l->sources, (size_t)n * sizeof(*p));

		if (!p)
			return -ENOMEM;
		for (int i = l->n_sources; i < n; i++)
			p[i] = (struct loop_source){NULL, NULL};
		l->sources = p;
		l->n_sources = n;
	}
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	l->sources[fd] = (struct loop_source){fn, ctx};
	return 0;
}

void loop_remove_fd(struct loop *l, int fd)
{
	if (fd < 0 || fd >= l->n_sources || !l->sources[fd].fn)
		return;
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	l->sources[fd] = (struct loop_source){NULL, NULL};
}

int loop_add_timer(struct loop *l, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn fn,
		   void *ctx)
{
	if (l->n_timers == MAX_TIMERS)
		return -ENOSPC;
	l->timers[l->n_timers] = (struct timer){.interval_ns = interval_ns, .fn = fn, .ctx = ctx};
	loop_set_timer(l, l->n_timers, delay_ns);
	return l->n_timers++;
}

void loop_set_timer(struct loop *l, int id, uint64_t delay_ns)
{
	l->timers[id].due_ns =
		delay_ns == UINT64_MAX ? UINT64_MAX : clock_monotonic_ns() + delay_ns;
}

static int timeout_ms(const struct loop *l)
{
	uint64_t due = UINT64_MAX, now;

	if (l->n_timers == 0)
		return -1;
	now = clock_monotonic_ns();
	for (int i = 0; i < l->n_timers; i++) {
		if (l->timers[i].due_ns < due)
			due = l->timers[i].due_ns;
	}
	if (due == UINT64_MAX)
		return -1;
	if (due <= now)
		return 0;
	due = (due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return due > 3600000 ? 3600000 : (int)due;
}

static void run_timers(struct loop *l)
{
	uint64_t now = l->n_timers ? clock_monotonic_ns() : 0;

	for (int i = 0; i < l->n_timers && !l->exiting; i++) {
		struct timer *t = &l->timers[i];

		if (t->due_ns > now)
			continue;
		/* A late timer does not catch up: the next one is a whole interval from now. */
		t->due_ns = t->interval_ns ? now + t->interval_ns : UINT64_MAX;
		t->fn(t->ctx);
	}
}

int loop_run(struct loop *l)
{
	struct epoll_event events[MAX_EVENTS];

	while (!l->exiting) {
		int n = epoll_wait(l->epoll_fd, events, MAX_EVENTS, timeout_ms(l));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !l->exiting; i++) {
			int fd = events[i].data.fd;
			struct loop_source s = l->sources[fd];

			if (s.fn)
				s.fn(s.ctx, fd, events[i].events);
		}
		if (!l->exiting)
			run_timers(l);
	}
	return l->code;
}

void loop_exit(struct loop *l, int code)
{
	if (!l->exiting)
		l->code = code;
	l->exiting = true;
}

bool loop_exiting(const struct loop *l)
{
	return l->exiting;
}
