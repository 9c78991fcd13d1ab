/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which blocks need a stack, and to which block a stack belongs.
 *
 * The two events of a switch, the record of the switch and its sampled stack, may come in either
 * order. A sampled stack belongs to the current block or, while the thread still runs, to the one
 * that is about to begin.
 */
#include <string.h>

#include "src/profile/profile.h"
#include "src/profiler/switches-internal.h"
#include "util/clock.h"

#define WELL_KNOWN 16 /* samples of one stack, from which on only one in so many is looked at */
/* Samples of a CPU in a quarter of a second, if three of four places are known: of one stack, or of
 * several, among which their time is split. */
#define ENOUGH		512
#define ENOUGH_TO_SPLIT 1024
#define MOST		4
#define FEW		64 /* samples that say little of all */
/* Seconds in a row that know places, before fewer samples do. In each of them so much time of short
 * blocks may have no stack, and such a part of it one of several. */
#define KNOWN_SECONDS 3
#define UNSEEN_NS     (10 * NSEC_PER_MSEC)
#define UNSEEN_PART   64
#define SPLIT_PART    32
#define KNOWN_DIVISOR 4
#define MAX_OFFERS    3	 /* of a place */
#define MAX_AGAIN     16 /* the same, of which nothing came, or no frames of its runtime */

#define MAX_NOTES 16 /* offers for a note of a block, each after twice the time of the last one */

/* A block that lasts so long, and so many times longer than all before, may have another cause than
 * its place: a freezer can hold the thread. */
#define UNUSUAL_NS    UINT64_C(1000000000)
#define UNUSUAL_TIMES 4

static bool are_known(const struct switches *s)
{
	return s->n_known == KNOWN_SECONDS;
}

bool switches_offer_stack(struct switches *s, const struct switch_out *o)
{
	uint32_t row = switches_thread_of(s, o), key;
	struct key *k;

	if (row == SWITCHES_NONE)
		return false;
	key = switches_find_key(s, row, o);
	k = key != SWITCHES_NONE ? &s->keys.items[key] : NULL;
	s->n_offered++;
	s->n_new += !k || k->n_sampled < WELL_KNOWN;
	s->n_split += k && k->n_stacks > 1;
	return !k || k->n_stacks != 1 || k->n_sampled < WELL_KNOWN ||
	       k->n_sampled++ % (are_known(s) ? WELL_KNOWN / KNOWN_DIVISOR : WELL_KNOWN) == 0;
}

bool switches_places_known(struct switches *s, uint64_t time_ns)
{
	bool ends = time_ns - s->second_ns >= NSEC_PER_SEC;

	if (s->unseen_ns > UNSEEN_NS || (ends && (s->unseen_ns > s->short_ns / UNSEEN_PART ||
						  s->split_ns > s->short_ns / SPLIT_PART)))
		s->n_known = 0;
	else if (ends && s->n_known < KNOWN_SECONDS)
		s->n_known++;
	if (ends) {
		s->second_ns = time_ns;
		s->short_ns = s->unseen_ns = s->split_ns = 0;
	}
	return are_known(s);
}

uint32_t switches_enough_stacks(struct switches *s)
{
	if (s->n_offered < FEW)
		return s->enough;
	if (s->n_new > s->n_offered / MOST)
		s->enough = UINT32_MAX;
	else
		s->enough = s->n_split > s->n_offered / MOST ? ENOUGH_TO_SPLIT : ENOUGH;
	s->n_offered = s->n_new = s->n_split = 0;
	return s->enough;
}

void switches_stack(struct switches *s, const struct switch_out *o,
		    const struct switch_stack *stack)
{
	uint32_t row = switches_thread_of(s, o), key = SWITCHES_NONE, place;
	struct switch_thread *t;

	if (row != SWITCHES_NONE)
		key = switches_key_of(s, row, o);
	if (key == SWITCHES_NONE)
		return;
	place = switches_put_stack(s, &s->keys.items[key], stack);
	t = &s->threads.items[row];
	if (place == SWITCHES_NONE) {
		s->totals.n_refused++;
		return;
	}
	/* Of a block that is over: its record was lost, or came late. */
	if (t->doing == BLOCKED && t->key != key)
		return;
	s->keys.items[key].n_sampled++;
	t->sampled_key = key;
	t->sampled = place;
	t->sampled_ns = o->time_ns;
}

bool switches_better_stack(struct switches *s, const struct switch_out *o,
			   const struct switch_stack *stack)
{
	uint32_t row = switches_find_thread(s, o->id), place;
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	if (!t || t->pid != o->pid || t->doing != BLOCKED || t->key == SWITCHES_NONE ||
	    t->sampled_key != t->key || t->sampled_ns != o->time_ns)
		return false;
	place = switches_put_stack(s, &s->keys.items[t->key], stack);
	s->totals.n_refused += place == SWITCHES_NONE;
	t->sampled = place != SWITCHES_NONE ? place : t->sampled;
	return place != SWITCHES_NONE;
}

static bool is_unusual(const struct switch_thread *t, const struct key *k, uint64_t time_ns)
{
	uint64_t ns = time_ns > t->out_ns ? time_ns - t->out_ns : 0;

	return t->offered_ns != t->out_ns && ns >= UNUSUAL_NS && ns / UNUSUAL_TIMES >= k->most_ns;
}

/* Of those that vary each block is looked at, until some were. */
static bool is_seen_enough(const struct switch_thread *t, const struct key *k)
{
	if (!k->varies || t->offered_ns == t->out_ns)
		return true;
	return k->n_sampled >= WELL_KNOWN && hash_u64(t->out_ns) % WELL_KNOWN != 0;
}

/* Its runtime may be about to start: the thread is looked at again when it has been blocked for
 * twice as long. */
static bool is_tried(const struct switch_thread *t, const struct key *k, uint64_t time_ns)
{
	return k->n_again == MAX_AGAIN ||
	       (t->offered_ns == t->out_ns &&
		(time_ns - t->out_ns) / 2 < t->offered_at_ns - t->out_ns);
}

/* Or there is no use in trying once more. */
static bool is_known(const struct switch_thread *t, const struct key *k, uint64_t time_ns)
{
	if (switches_is_unread(k))
		return is_tried(t, k, time_ns);
	if (t->again)
		return false;
	if (switches_is_anywhere(k))
		return t->offered_ns == t->out_ns;
	if (k->n_stacks == 0)
		return k->n_offers == MAX_OFFERS;
	return is_seen_enough(t, k) && !is_unusual(t, k, time_ns);
}

/* It was sampled, with all that can be read of it. */
static bool has_stack(const struct switch_thread *t, const struct key *k)
{
	return t->sampled_key == t->key && switches_is_read(k->stacks[t->sampled].stack);
}

bool switches_wants(const struct switches *s, const struct switch_out *block, bool alone)
{
	uint32_t row = switches_find_thread(s, block->id);
	uint32_t key = row != SWITCHES_NONE ? switches_find_key(s, row, block) : SWITCHES_NONE;
	const struct key *k = key != SWITCHES_NONE ? &s->keys.items[key] : NULL;

	return !k || k->n_stacks == 0 || switches_is_anywhere(k) || k->varies ||
	       switches_is_unread(k) || (alone && switches_lasted(s, block, UINT64_MAX));
}

/* settled: there will be nothing to offer before the thread blocks again, or much longer. */
static bool is_unseen(const struct switches *s, const struct switch_thread *t, uint64_t time_ns,
		      uint64_t min_ns, bool *ret_settled)
{
	const struct key *k =
		t->doing == BLOCKED && t->key != SWITCHES_NONE ? &s->keys.items[t->key] : NULL;

	*ret_settled = !k || (!switches_is_unread(k) && is_known(t, k, time_ns));
	return k && !is_known(t, k, time_ns) && !has_stack(t, k) &&
	       t->out_ns + (switches_is_anywhere(k) ? 0 : min_ns) <= time_ns;
}

static struct switch_out offered(struct switch_thread *t, struct key *k, uint64_t time_ns)
{
	struct switch_out block = {.time_ns = t->out_ns,
				   .sp = k->sp,
				   .ip = k->ip,
				   .object = k->object,
				   .id = t->id,
				   .pid = t->pid,
				   .tid = t->tid,
				   .cpu = t->cpu,
				   .how = SWITCH_BLOCKED};

	k->n_offers += k->n_stacks == 0 || switches_is_anywhere(k);
	k->n_again += switches_is_unread(k);
	t->offered_ns = t->out_ns;
	t->offered_at_ns = time_ns;
	t->offered_end_ns = 0;
	t->again = false;
	block.spot = t->spot;
	return block;
}

uint32_t switches_unseen(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			 struct switch_out *ret, uint32_t n)
{
	bool all = time_ns - s->looked_ns >= NSEC_PER_SEC, settled;
	uint32_t n_found = 0;

	s->looked_ns = all ? time_ns : s->looked_ns;
	for (uint32_t i = 0; i < s->threads.n && n_found < n; i++) {
		uint32_t row = s->next_offer < s->threads.n ? s->next_offer : 0;
		struct switch_thread *t = &s->threads.items[row];

		s->next_offer = row + 1;
		if (s->settled.items[row] && !all)
			continue;
		if (is_unseen(s, t, time_ns, min_ns, &settled))
			ret[n_found++] = offered(t, &s->keys.items[t->key], time_ns);
		s->settled.items[row] = settled;
	}
	return n_found;
}

void switches_offer_again(struct switches *s, const struct switch_out *block)
{
	uint32_t row = switches_find_thread(s, block->id);
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;
	struct key *k;

	if (!t || t->doing != BLOCKED || t->key == SWITCHES_NONE || t->offered_ns != block->time_ns)
		return;
	k = &s->keys.items[t->key];
	if (k->n_again == MAX_AGAIN || switches_is_unread(k))
		return;
	k->n_again++;
	k->n_offers -= k->n_offers > 0;
	t->again = true;
	s->settled.items[row] = 0;
}

const struct switch_stack *switches_waits(const struct switches *s, uint32_t id,
					  uint64_t *ret_object, uint32_t *ret_pid)
{
	uint32_t row = switches_find_thread(s, id);
	const struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;
	const struct key *k =
		t && t->doing == BLOCKED && t->key != SWITCHES_NONE ? &s->keys.items[t->key] : NULL;

	if (!k || k->n_stacks == 0)
		return NULL;
	*ret_object = k->object;
	*ret_pid = t->pid;
	return k->stacks[t->sampled_key == t->key ? t->sampled : 0].stack;
}

bool switches_lasted(const struct switches *s, const struct switch_out *block, uint64_t time_ns)
{
	uint32_t row = switches_find_thread(s, block->id);
	const struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	if (!t || t->pid != block->pid || t->offered_ns != block->time_ns)
		return false;
	return t->offered_end_ns ? t->offered_end_ns > time_ns
				 : t->doing == BLOCKED && t->out_ns == block->time_ns;
}

/* ---- Notes ---- */

static struct switch_thread *thread_with(const struct switches *s, const struct switch_out *o)
{
	uint32_t row = switches_find_thread(s, o->id);
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	return t && t->pid == o->pid && t->wanted ? t : NULL;
}

/* The block that goes on now, or of which the sample comes before the switch. */
static bool may_be_of(const struct switches *s, const struct switch_thread *t,
		      const struct switch_out *o)
{
	const struct key *k;

	if (t->doing != BLOCKED)
		return t->doing == RUNNING || t->doing == NOTHING_KNOWN;
	k = t->key != SWITCHES_NONE ? &s->keys.items[t->key] : NULL;
	return k && k->sp == o->sp && k->ip == o->ip;
}

static void put_note(struct switches *s, struct switch_thread *t, const struct switch_out *o,
		     uint64_t read_ns, const uint8_t *bytes, uint32_t n)
{
	switches_drop_note(s, t);
	t->note = block_notes_put(&s->notes, bytes, n);
	s->totals.n_refused += t->note == BLOCK_NOTES_NONE;
	t->note_read_ns = read_ns;
	t->note_sp = o->sp;
	t->note_ip = o->ip;
}

void switches_note(struct switches *s, const struct switch_out *o, uint64_t read_ns,
		   const uint8_t *bytes, uint32_t n)
{
	uint32_t row = switches_thread_of(s, o);
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	if (t && may_be_of(s, t, o))
		put_note(s, t, o, read_ns, bytes, n);
}

void switches_note_late(struct switches *s, const struct switch_out *o, uint64_t read_ns,
			const uint8_t *bytes, uint32_t n)
{
	struct switch_thread *t = thread_with(s, o);

	if (t && t->doing == BLOCKED && t->out_ns == o->time_ns && t->note == BLOCK_NOTES_NONE)
		put_note(s, t, o, read_ns, bytes, n);
}

uint32_t switches_unnoted(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			  struct switch_out *ret, uint32_t n)
{
	bool (*takes)(void *, const struct switch_out *) = s->callbacks.takes_note;
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < s->threads.n && n_found < n; i++) {
		uint32_t row = s->next_note < s->threads.n ? s->next_note : 0;
		struct switch_thread *t = &s->threads.items[row];

		s->next_note = row + 1;
		if (!t->used || t->doing != BLOCKED || t->key == SWITCHES_NONE ||
		    t->note != BLOCK_NOTES_NONE || t->note_offers == MAX_NOTES ||
		    t->out_ns + (min_ns << t->note_offers) > time_ns)
			continue;
		ret[n_found] = (struct switch_out){.time_ns = t->out_ns,
						   .sp = s->keys.items[t->key].sp,
						   .ip = s->keys.items[t->key].ip,
						   .id = t->id,
						   .pid = t->pid,
						   .tid = t->tid,
						   .cpu = t->cpu,
						   .how = SWITCH_BLOCKED};
		if (takes && !takes(s->ctx, &ret[n_found])) {
			t->note_offers = MAX_NOTES;
			continue;
		}
		t->note_offers++;
		n_found++;
	}
	return n_found;
}
