/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "src/profiler/newcomers.h"
#include "util/array.h"
#include "util/clock.h"

/* Until its file, its libraries and perhaps its first samples are in the rings. */
#define SOON_NS	  (10 * NSEC_PER_MSEC)
#define GAP_NS	  (50 * NSEC_PER_MSEC)
#define MAX_RINGS 8192

struct newcomers {
	struct loop *loop;
	bool (*look)(void *ctx);
	void *ctx;
	int timer;
	bool due, again; /* a look; one more after one that found something */
	uint64_t looked_ns;
	ARRAY(int) woken; /* not watched */
};

static void watch(struct newcomers *n, int fd);

/*
 * Nobody tells what was written between the wake-up and now: epoll asks a ring when it is added,
 * and again before it reports it, and a ring tells only once. So a look that finds something, or
 * begins to watch, has another one behind it. While one after the other finds something, the timer
 * does, and the rings are left alone.
 */
static void on_timer(void *ctx)
{
	struct newcomers *n = ctx;
	bool found, watched = n->woken.n == 0;

	n->looked_ns = clock_monotonic_ns();
	found = n->look(n->ctx);
	n->due = found || !watched;
	if (n->due)
		loop_set_timer(n->loop, n->timer, GAP_NS);
	if (!found || !n->again) {
		for (uint32_t i = 0; i < n->woken.n; i++)
			watch(n, n->woken.items[i]);
		array_clear(&n->woken);
	}
	n->again = found;
}

static uint64_t delay_ns(const struct newcomers *n)
{
	uint64_t since = clock_monotonic_ns() - n->looked_ns;

	return since + SOON_NS < GAP_NS ? GAP_NS - since : SOON_NS;
}

static void on_records(void *ctx, int fd, uint32_t events)
{
	struct newcomers *n = ctx;
	int *place;

	loop_remove_fd(n->loop, fd);
	/* An event whose task is gone reports an error for ever. */
	place = events & (EPOLLHUP | EPOLLERR) ? NULL : array_push(&n->woken);
	if (place)
		*place = fd;
	if (n->due)
		return;
	n->due = true;
	loop_set_timer(n->loop, n->timer, delay_ns(n));
}

static void watch(struct newcomers *n, int fd)
{
	(void)loop_add_fd(n->loop, fd, EPOLLIN, on_records, n);
}

int newcomers_new(struct newcomers **ret, struct loop *loop, bool (*look)(void *ctx), void *ctx)
{
	_cleanup_(newcomers_freep) struct newcomers *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->loop = loop;
	n->look = look;
	n->ctx = ctx;
	n->woken.max = MAX_RINGS;
	n->timer = loop_add_timer(loop, UINT64_MAX, 0, on_timer, n);
	if (n->timer < 0)
		return n->timer;
	*ret = TAKE_PTR(n);
	return 0;
}

struct newcomers *newcomers_free(struct newcomers *n)
{
	if (n)
		array_deinit(&n->woken);
	free(n);
	return NULL;
}

void newcomers_add(struct newcomers *n, int fd)
{
	watch(n, fd);
}

void newcomers_remove(struct newcomers *n, int fd)
{
	loop_remove_fd(n->loop, fd);
	for (uint32_t i = 0; i < n->woken.n; i++) {
		if (n->woken.items[i] == fd)
			n->woken.items[i] = n->woken.items[--n->woken.n];
	}
}
