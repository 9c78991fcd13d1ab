/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of all tables of the model: rows with stable numbers, the clock of the records, and
 * budgets.
 *
 * Questions to the broker (maps, process facts, cgroups) cost a round trip and are asked at a
 * sample. Process facts and cgroups have a budget of so many a second each, on the records' clock.
 * A process decides how much its maps cost, so these have a share of the wall clock. A question
 * over budget is postponed to a later sample of the same process, and counted.
 */
#include "src/host/internal.h"
#include "util/clock.h"

/* ---- Rows ---- */

uint32_t host_rows_add(struct host_rows *r, void *item)
{
	uint32_t row;

	if (r->spare.n) {
		row = r->spare.items[--r->spare.n];
		r->items.items[row] = item;
	} else {
		void **place;

		/* The spare list must have room for every row, because removal cannot fail. */
		if (!array_reserve_one((void **)&r->spare.items, r->items.n, &r->spare.cap,
				       r->spare.max, sizeof(*r->spare.items)))
			return UINT32_MAX;
		place = array_push(&r->items);
		if (!place)
			return UINT32_MAX;
		*place = item;
		row = r->items.n - 1;
	}
	r->n_used++;
	return row;
}

void host_rows_remove(struct host_rows *r, uint32_t row)
{
	r->items.items[row] = NULL;
	r->spare.items[r->spare.n++] = row;
	r->n_used--;
}

void host_rows_deinit(struct host_rows *r)
{
	array_deinit(&r->items);
	array_deinit(&r->spare);
	r->n_used = 0;
}

void host_rows_init(struct host_rows *r)
{
	/* The tables have their own limits; this only bounds the row numbers. */
	r->items.max = r->spare.max = UINT32_MAX / 2;
}

/* ---- Time and budget ---- */

void host_see_time(struct host *h, uint64_t time_ns)
{
	if (time_ns > h->time_ns)
		h->time_ns = time_ns;
}

uint64_t host_now(struct host *h)
{
	uint64_t now = h->source.now ? h->source.now(h->source.ctx) : 0;

	return now > h->time_ns ? now : h->time_ns;
}

bool host_budget_take(struct host *h, struct budget *b, uint64_t per_second)
{
	uint64_t now = h->time_ns, earned;

	if (!b->last_ns || now - b->last_ns >= NSEC_PER_SEC) {
		b->tokens = per_second;
		b->last_ns = now;
	} else {
		earned = (now - b->last_ns) * per_second / NSEC_PER_SEC;
		if (earned) {
			b->tokens += earned;
			if (b->tokens > per_second)
				b->tokens = per_second;
			b->last_ns = now;
		}
	}
	if (!b->tokens) {
		h->stats.deferred++;
		return false;
	}
	b->tokens--;
	return true;
}

uint64_t host_wall_ns(struct host *h)
{
	return h->source.wall ? h->source.wall(h->source.ctx) : clock_monotonic_ns();
}

bool host_share_begin(struct host *h, struct time_share *s)
{
	bool left = time_share_begin(s, host_wall_ns(h));

	h->stats.deferred += !left;
	return left;
}

void host_share_end(struct host *h, struct time_share *s)
{
	time_share_end(s, host_wall_ns(h));
}
