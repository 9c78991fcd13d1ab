/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/reader/own-tids.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define ASK_AGAIN_NS (100 * NSEC_PER_MSEC)
#define LEFT_NS	     (60 * NSEC_PER_SEC)

void own_tids_init(struct own_tids *o, void (*ask)(void *ctx, uint32_t tid, bool with_stat),
		   void *ctx)
{
	*o = (struct own_tids){.ask = ask, .ctx = ctx};
	for (uint32_t i = 0; i < OWN_TIDS; i++)
		o->items[i].thread.stat = -EBADF;
}

static void close_stat(struct own_tids *o, struct own_tid *t)
{
	o->n_stats -= t->thread.stat >= 0;
	t->thread.stat = close_fd(t->thread.stat);
}

void own_tids_deinit(struct own_tids *o)
{
	for (uint32_t i = 0; i < OWN_TIDS; i++)
		close_stat(o, &o->items[i]);
}

static struct own_tid *place_of(struct own_tids *o, uint32_t tid)
{
	return &o->items[tid % OWN_TIDS];
}

static void ask(struct own_tids *o, struct own_tid *t, bool with_stat, uint64_t now_ns)
{
	if (t->asked_ns && now_ns - t->asked_ns < ASK_AGAIN_NS)
		return;
	t->asked_ns = now_ns;
	t->n_uses = 0;
	t->asked_soon = t->thread.number != 0;
	o->ask(o->ctx, t->tid, with_stat);
}

static bool is_used_up(struct own_tid *t)
{
	return t->n_uses++ >= (t->asked_soon ? OWN_TIDS_USES : OWN_TIDS_FIRST_USES);
}

struct own_thread own_tids_find(struct own_tids *o, uint32_t tid, bool with_stat, uint64_t now_ns)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid != tid) {
		close_stat(o, t);
		*t = (struct own_tid){.tid = tid, .thread.stat = -EBADF};
	}
	if (t->thread.number == 0 || (with_stat && t->thread.stat < 0) || is_used_up(t))
		ask(o, t, with_stat, now_ns);
	return t->thread;
}

void own_tids_note_left(struct own_tids *o, uint32_t tid, uint64_t now_ns)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid == tid)
		t->left_ns = now_ns;
}

bool own_tids_leaves(struct own_tids *o, uint32_t tid, uint64_t now_ns)
{
	const struct own_tid *t = place_of(o, tid);

	return t->tid == tid && t->left_ns && now_ns - t->left_ns < LEFT_NS;
}

/* The others are asked for again when they are sampled. */
static void make_room(struct own_tids *o)
{
	while (o->n_stats >= OWN_TIDS_STATS)
		close_stat(o, &o->items[o->hand++ % OWN_TIDS]);
}

void own_tids_put(struct own_tids *o, uint32_t tid, const struct own_thread *thread)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid != tid) {
		(void)close_fd(thread->stat);
		return;
	}
	close_stat(o, t);
	if (thread->stat >= 0)
		make_room(o);
	t->thread = *thread;
	o->n_stats += thread->stat >= 0;
}
