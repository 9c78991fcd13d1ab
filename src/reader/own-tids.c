/* SPDX-License-Identifier: Apache-2.0 */
#include "src/reader/own-tids.h"
#include "util/clock.h"

#define ASK_AGAIN_NS (100 * NSEC_PER_MSEC)

static struct own_tid *place_of(struct own_tids *o, uint32_t tid)
{
	return &o->items[tid % OWN_TIDS];
}

static void ask(struct own_tids *o, struct own_tid *t, uint64_t now_ns)
{
	if (t->asked_ns && now_ns - t->asked_ns < ASK_AGAIN_NS)
		return;
	t->asked_ns = now_ns;
	t->n_uses = 0;
	t->asked_soon = t->thread.number != 0;
	o->ask(o->ctx, t->tid);
}

static bool is_used_up(struct own_tid *t)
{
	return t->n_uses++ >= (t->asked_soon ? OWN_TIDS_USES : OWN_TIDS_FIRST_USES);
}

struct own_thread own_tids_find(struct own_tids *o, uint32_t tid, uint64_t now_ns)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid != tid)
		*t = (struct own_tid){.tid = tid};
	if (t->thread.number == 0 || is_used_up(t))
		ask(o, t, now_ns);
	return t->thread;
}

void own_tids_put(struct own_tids *o, uint32_t tid, const struct own_thread *thread)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid == tid)
		t->thread = *thread;
}
