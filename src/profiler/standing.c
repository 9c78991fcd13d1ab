/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/standing.h"

static uint64_t hash_tid(uint32_t tid)
{
	return hash_u64((uint64_t)tid + 1);
}

void standing_init(struct standing *s)
{
	*s = (struct standing){.by_tid = HASH_INDEX_INIT};
	s->threads.max = STANDING_MAX;
}

void standing_deinit(struct standing *s)
{
	array_deinit(&s->threads);
	hash_index_deinit(&s->by_tid);
}

void standing_add(struct standing *s, const struct message_stands *thread)
{
	struct message_stands *t = array_push(&s->threads);

	if (!t)
		return;
	*t = *thread;
	if (hash_index_add(&s->by_tid, hash_tid(t->tid), s->threads.n - 1) < 0)
		t->tid = 0;
}

static void take(struct standing *s, uint32_t row)
{
	struct message_stands *t = &s->threads.items[row];

	if (t->tid != 0)
		(void)hash_index_remove(&s->by_tid, hash_tid(t->tid), row);
	t->tid = 0;
}

bool standing_next(struct standing *s, struct message_stands *ret)
{
	while (s->next < s->threads.n) {
		*ret = s->threads.items[s->next];
		take(s, s->next++);
		if (ret->tid != 0)
			return true;
	}
	(void)standing_clear(s);
	return false;
}

void standing_end(struct standing *s, uint32_t tid)
{
	uint64_t h = hash_tid(tid);
	uint32_t slot = hash_index_first(&s->by_tid, h), row;

	if (s->by_tid.n == 0)
		return;
	while ((row = hash_index_row(&s->by_tid, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&s->by_tid, slot, h) && s->threads.items[row].tid == tid) {
			take(s, row);
			return;
		}
		slot = hash_index_next(&s->by_tid, slot);
	}
}

uint32_t standing_clear(struct standing *s)
{
	uint32_t n = s->by_tid.n;

	array_clear(&s->threads);
	hash_index_clear(&s->by_tid);
	s->next = 0;
	return n;
}
