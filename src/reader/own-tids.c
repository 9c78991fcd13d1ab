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
	o->ask(o->ctx, t->tid);
}

uint32_t own_tids_find(struct own_tids *o, uint32_t tid, uint64_t now_ns, uint64_t *ret_robust_list)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid != tid) {
		t->tid = tid;
		t->own = 0;
		t->robust_list = 0;
		t->asked_ns = 0;
	}
	if (t->own == 0 || t->n_uses++ >= OWN_TIDS_USES)
		ask(o, t, now_ns);
	if (ret_robust_list)
		*ret_robust_list = t->robust_list;
	return t->own;
}

void own_tids_put(struct own_tids *o, uint32_t tid, uint32_t own, uint64_t robust_list)
{
	struct own_tid *t = place_of(o, tid);

	if (t->tid != tid)
		return;
	t->own = own;
	t->robust_list = robust_list;
}
