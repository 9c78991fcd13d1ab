/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread does from one switch to the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/switches-internal.h"
#include "util/cleanup.h"

#define MAX_CPUS 8192

#define STATE_BLOCKED 0x3  /* S, D */
#define STATE_STOPPED 0xc  /* T, t */
#define STATE_DEAD    0x30 /* X, Z: and the other way round before Linux 4.14 */
#define STATE_IDLE    0xc0 /* P, I */

enum switch_how switch_how(int64_t prev_state)
{
	if (prev_state & STATE_BLOCKED)
		return SWITCH_BLOCKED;
	if (prev_state & STATE_DEAD)
		return SWITCH_DEAD;
	return prev_state & (STATE_STOPPED | STATE_IDLE) ? SWITCH_STOPPED : SWITCH_PREEMPTED;
}

int switches_new(struct switches **ret, const struct switches_limits *limits,
		 const struct switches_callbacks *callbacks, void *ctx)
{
	struct switches *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->callbacks = *callbacks;
	s->ctx = ctx;
	s->threads.max = s->settled.max = limits->threads;
	s->keys.max = limits->keys;
	s->max_stack_bytes = limits->stack_bytes;
	s->enough = UINT32_MAX;
	block_notes_init(&s->notes, limits->notes);
	s->free_thread = s->free_key = SWITCHES_NONE;
	s->cpus = calloc(MAX_CPUS, sizeof(*s->cpus));
	if (!s->cpus) {
		switches_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct switches *switches_free(struct switches *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->keys.n; i++)
		switches_free_stacks(s, &s->keys.items[i]);
	array_deinit(&s->threads);
	array_deinit(&s->settled);
	array_deinit(&s->keys);
	hash_index_deinit(&s->thread_index);
	hash_index_deinit(&s->key_index);
	block_notes_deinit(&s->notes);
	free(s->cpus);
	free(s);
	return NULL;
}

const struct switch_totals *switches_totals(const struct switches *s)
{
	return &s->totals;
}

void switches_clear_totals(struct switches *s)
{
	s->totals = (struct switch_totals){0};
}

/* ---- The tables ---- */

static uint64_t hash_thread(uint32_t id)
{
	return hash_u64(id + 1);
}

static bool is_thread(const struct switches *s, uint32_t row, uint32_t id)
{
	return row < s->threads.n && s->threads.items[row].used && s->threads.items[row].id == id;
}

static uint32_t look_up_thread(const struct switches *s, uint32_t id)
{
	uint64_t h = hash_thread(id);
	uint32_t slot = hash_index_first(&s->thread_index, h), row;

	while ((row = hash_index_row(&s->thread_index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&s->thread_index, slot, h) && s->threads.items[row].id == id)
			return row;
		slot = hash_index_next(&s->thread_index, slot);
	}
	return SWITCHES_NONE;
}

uint32_t switches_find_thread(const struct switches *s, uint32_t id)
{
	uint32_t row = s->recent[id % SWITCHES_RECENT];

	return is_thread(s, row, id) ? row : look_up_thread(s, id);
}

/* The same, of a thread that will soon be looked for again. */
static uint32_t find_switched(struct switches *s, uint32_t id)
{
	uint32_t *recent = &s->recent[id % SWITCHES_RECENT];

	if (!is_thread(s, *recent, id))
		*recent = look_up_thread(s, id);
	return *recent;
}

static uint32_t take_thread_row(struct switches *s)
{
	uint32_t row = s->free_thread;

	if (row != SWITCHES_NONE) {
		s->free_thread = s->threads.items[row].first_key;
		return row;
	}
	/* Both have the same rows, or the second one has some more. */
	if (s->settled.n == s->threads.n && !array_push(&s->settled))
		return SWITCHES_NONE;
	return array_push(&s->threads) ? s->threads.n - 1 : SWITCHES_NONE;
}

static void free_thread_row(struct switches *s, uint32_t row)
{
	s->threads.items[row] = (struct switch_thread){.first_key = s->free_thread};
	s->free_thread = row;
}

static uint32_t add_thread(struct switches *s, const struct switch_out *o)
{
	bool (*wants)(void *, const struct switch_out *) = s->callbacks.wants;
	uint32_t row = take_thread_row(s);

	if (row == SWITCHES_NONE)
		return SWITCHES_NONE;
	s->threads.items[row] = (struct switch_thread){.id = o->id,
						       .pid = o->pid,
						       .tid = o->tid,
						       .key = SWITCHES_NONE,
						       .sampled_key = SWITCHES_NONE,
						       .first_key = SWITCHES_NONE,
						       .note = BLOCK_NOTES_NONE,
						       .asked = s->round,
						       .used = true,
						       .wanted = !wants || wants(s->ctx, o)};
	if (hash_index_add(&s->thread_index, hash_thread(o->id), row) < 0) {
		free_thread_row(s, row);
		return SWITCHES_NONE;
	}
	return row;
}

static void account(struct switches *s, struct switch_thread *t, uint64_t time_ns, bool last);

/* Is it wanted still, or by now? */
static void judge(struct switches *s, struct switch_thread *t, const struct switch_out *o)
{
	bool wanted = s->callbacks.wants(s->ctx, o);

	t->asked = s->round;
	if (wanted == t->wanted)
		return;
	if (t->wanted) {
		account(s, t, o->time_ns, false);
		switches_tell_thread(s, t);
		switches_forget_keys(s, t);
	}
	switches_drop_note(s, t);
	t->wanted = wanted;
	t->doing = NOTHING_KNOWN;
	t->since_ns = o->time_ns;
	t->offered_ns = 0;
	t->assumed = t->again = false;
}

/* The thread in that row is not known, or not whether it is wanted. The end of the one that had its
 * number before may have been lost. */
__attribute__((noinline)) static uint32_t get_to_know(struct switches *s,
						      const struct switch_out *o, uint32_t row)
{
	if (row != SWITCHES_NONE && s->threads.items[row].pid != o->pid) {
		switches_end(s, o->id, 0);
		row = SWITCHES_NONE;
	}
	if (row == SWITCHES_NONE)
		row = add_thread(s, o);
	s->totals.n_refused += row == SWITCHES_NONE;
	if (row != SWITCHES_NONE && s->threads.items[row].asked != s->round)
		judge(s, &s->threads.items[row], o);
	return row;
}

uint32_t switches_thread_of(struct switches *s, const struct switch_out *o)
{
	uint32_t row = find_switched(s, o->id);

	if (row == SWITCHES_NONE || s->threads.items[row].pid != o->pid ||
	    s->threads.items[row].asked != s->round)
		row = get_to_know(s, o, row);
	return row != SWITCHES_NONE && s->threads.items[row].wanted ? row : SWITCHES_NONE;
}

/* ---- Time ---- */

/* What the thread has been doing is accounted for up to time_ns; last: it ends there. */
static void account(struct switches *s, struct switch_thread *t, uint64_t time_ns, bool last)
{
	uint64_t ns = time_ns > t->since_ns ? time_ns - t->since_ns : 0;

	switch (t->doing) {
	case NOTHING_KNOWN:
		break;
	case RUNNING:
	case RUNNABLE:
		s->totals.running_ns += ns;
		t->running_ns += ns;
		break;
	case BLOCKED:
		s->totals.blocked_ns += ns;
		switches_credit(s, t, ns, time_ns, last);
		break;
	case PREEMPTED:
		s->totals.waiting_ns += ns;
		t->waiting_ns += ns;
		break;
	case STOPPED:
		s->totals.stopped_ns += ns;
		break;
	case LOST:
		s->totals.unknown_ns += ns;
		break;
	}
	if (ns)
		t->since_ns = time_ns;
}

static void note_record(struct switches *s, uint32_t cpu, uint64_t time_ns)
{
	if (cpu < MAX_CPUS && time_ns > s->cpus[cpu].last_ns)
		s->cpus[cpu].last_ns = time_ns;
}

/* Two of a kind in a row: the one between them is missing, and the time is anybody's. */
static void doubt(struct switches *s, struct switch_thread *t)
{
	s->totals.n_broken += !t->assumed;
	switches_drop_note(s, t);
	t->offered_ns = 0;
	t->doing = LOST;
}

void switches_follow(struct switches *s, uint64_t time_ns)
{
	s->begin_ns = s->whole_ns = time_ns;
}

/* A thread that stops there for the first time; o->time_ns: nobody knows since when it ran. */
static uint64_t ran_since(const struct switches *s, const struct switch_out *o, uint64_t before_ns)
{
	const struct switch_cpu *c = o->cpu < MAX_CPUS ? &s->cpus[o->cpu] : NULL;

	if (c && c->in_ns && c->in_ns >= s->whole_ns)
		return c->id == o->id ? c->in_ns : o->time_ns;
	return c && before_ns < s->whole_ns && s->whole_ns < o->time_ns ? s->whole_ns : o->time_ns;
}

/* Its first switch: what it did before that counts, too. */
static void account_before(struct switches *s, struct switch_thread *t, const struct switch_out *o,
			   uint64_t before_ns)
{
	uint64_t since = ran_since(s, o, before_ns);
	/* Before t->since_ns it was not wanted. */
	uint64_t begin = s->begin_ns > t->since_ns ? s->begin_ns : t->since_ns;

	if (!s->begin_ns || o->time_ns <= begin)
		return;
	since = since > begin ? since : begin;
	s->totals.before_ns += since - begin;
	t->doing = RUNNING;
	t->since_ns = since;
}

void switches_begin(struct switches *s, const struct switch_out *o, bool running)
{
	uint32_t row = switches_find_thread(s, o->id);
	struct switch_thread *t;

	if (row == SWITCHES_NONE || s->threads.items[row].pid != o->pid)
		row = switches_thread_of(s, o);
	t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;
	if (!t || !t->wanted || t->doing != NOTHING_KNOWN)
		return;
	t->doing = running ? RUNNING : PREEMPTED;
	t->since_ns = t->out_ns = o->time_ns;
	t->cpu = o->cpu;
}

void switches_stands(struct switches *s, const struct switch_out *o)
{
	uint32_t row = switches_thread_of(s, o);
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	if (!t || t->doing != NOTHING_KNOWN)
		return;
	if (s->begin_ns && o->time_ns > s->begin_ns)
		s->totals.before_ns += o->time_ns - s->begin_ns;
	s->settled.items[row] = 0;
	t->doing = o->how == SWITCH_PREEMPTED ? RUNNABLE : BLOCKED;
	t->since_ns = t->out_ns = o->time_ns;
	t->cpu = o->cpu;
	t->assumed = true;
	if (t->doing == BLOCKED)
		t->key = switches_key_of(s, row, o);
	s->settled.items[row] = 0;
}

void switches_out(struct switches *s, const struct switch_out *o)
{
	static const enum doing next[] = {[SWITCH_BLOCKED] = BLOCKED,
					  [SWITCH_PREEMPTED] = PREEMPTED,
					  [SWITCH_STOPPED] = STOPPED,
					  [SWITCH_DEAD] = STOPPED};
	uint64_t before_ns = o->cpu < MAX_CPUS ? s->cpus[o->cpu].last_ns : 0;
	uint32_t row = switches_thread_of(s, o);
	struct switch_thread *t;

	note_record(s, o->cpu, o->time_ns);
	if (row == SWITCHES_NONE) {
		if (o->how == SWITCH_DEAD)
			switches_end(s, o->id, 0);
		return;
	}
	s->totals.n_switches++;
	t = &s->threads.items[row];
	/* It went on here, and nobody said so: after the CPU's last record. */
	if (t->doing == BLOCKED || t->doing == PREEMPTED || t->doing == STOPPED) {
		switches_drop_note(s, t);
		if (!t->assumed)
			account(s, t, before_ns, true);
		doubt(s, t);
	}
	if (t->doing == NOTHING_KNOWN)
		account_before(s, t, o, before_ns);
	account(s, t, o->time_ns, true);
	if (o->how == SWITCH_DEAD) {
		switches_end(s, o->id, 0);
		return;
	}
	t->doing = next[o->how];
	t->since_ns = t->out_ns = o->time_ns;
	t->cpu = o->cpu;
	t->assumed = t->again = false;
	t->spot = o->spot;
	t->note_offers = 0;
	/* Of a block before it, whose switches were lost. */
	if (o->how != SWITCH_BLOCKED || t->note_sp != o->sp || t->note_ip != o->ip)
		switches_drop_note(s, t);
	t->key = o->how == SWITCH_BLOCKED ? switches_key_of(s, row, o) : SWITCHES_NONE;
	s->settled.items[row] = 0;
}

void switches_in(struct switches *s, uint32_t id, uint32_t cpu, uint64_t time_ns)
{
	uint32_t row = find_switched(s, id);
	struct switch_thread *t;

	note_record(s, cpu, time_ns);
	if (cpu < MAX_CPUS) {
		s->cpus[cpu].in_ns = time_ns;
		s->cpus[cpu].id = id;
	}
	if (row == SWITCHES_NONE || !s->threads.items[row].wanted)
		return;
	t = &s->threads.items[row];
	if (t->doing == RUNNING)
		doubt(s, t);
	if (t->doing == RUNNABLE)
		t->doing = PREEMPTED;
	if (t->offered_ns == t->out_ns && !t->offered_end_ns)
		t->offered_end_ns = time_ns;
	account(s, t, time_ns, true);
	switches_drop_note(s, t);
	t->doing = RUNNING;
	t->since_ns = time_ns;
	t->cpu = cpu;
	t->assumed = false;
	t->key = t->sampled_key = SWITCHES_NONE;
}

static void lose_thread(struct switches *s, struct switch_thread *t)
{
	switches_drop_note(s, t);
	account(s, t, t->cpu < MAX_CPUS ? s->cpus[t->cpu].last_ns : 0, false);
	t->doing = LOST;
	t->offered_ns = 0;
	t->key = t->sampled_key = SWITCHES_NONE;
}

void switches_lost(struct switches *s, uint32_t cpu, uint64_t time_ns)
{
	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (t->used && t->doing != NOTHING_KNOWN &&
		    (cpu == SWITCHES_ANY_CPU || t->cpu == cpu))
			lose_thread(s, t);
	}
	note_record(s, cpu, time_ns);
	s->whole_ns = time_ns ? time_ns : UINT64_MAX;
}

void switches_gap(struct switches *s, uint64_t begin_ns, uint64_t end_ns)
{
	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (!t->used || t->doing == NOTHING_KNOWN || t->since_ns >= end_ns)
			continue;
		account(s, t, begin_ns, false);
		switches_drop_note(s, t);
		s->totals.unknown_ns += end_ns - t->since_ns;
		t->since_ns = end_ns;
		t->assumed = true;
	}
	s->whole_ns = end_ns;
}

void switches_end(struct switches *s, uint32_t id, uint64_t time_ns)
{
	uint32_t row = switches_find_thread(s, id);
	struct switch_thread *t;

	if (row == SWITCHES_NONE)
		return;
	t = &s->threads.items[row];
	if (t->doing == RUNNING)
		account(s, t, time_ns, true);
	switches_tell_thread(s, t);
	switches_forget_keys(s, t);
	switches_drop_note(s, t);
	(void)hash_index_remove(&s->thread_index, hash_thread(id), row);
	free_thread_row(s, row);
}

bool switches_knows(const struct switches *s, uint32_t id)
{
	return switches_find_thread(s, id) != SWITCHES_NONE;
}

void switches_tell(struct switches *s, uint32_t id, uint64_t time_ns)
{
	uint32_t row = switches_find_thread(s, id);
	struct switch_thread *t = row != SWITCHES_NONE ? &s->threads.items[row] : NULL;

	if (!t || !t->wanted)
		return;
	account(s, t, time_ns, false);
	switches_tell_thread(s, t);
}

void switches_judge(struct switches *s, const struct switch_out *o)
{
	uint32_t row = switches_find_thread(s, o->id);

	if (row != SWITCHES_NONE && s->callbacks.wants && !s->callbacks.wants_stays)
		judge(s, &s->threads.items[row], o);
}

/* Room for others: keys of which there was nothing to tell. */
void switches_close(struct switches *s, uint64_t time_ns)
{
	bool crowded = s->n_keys > s->keys.max / 2 || s->stack_bytes > s->max_stack_bytes / 2;

	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (!t->used)
			continue;
		account(s, t, time_ns, false);
		switches_tell_thread(s, t);
		if (crowded)
			switches_drop_idle_keys(s, t);
		for (uint32_t k = t->first_key; k != SWITCHES_NONE; k = s->keys.items[k].next)
			s->keys.items[k].time_ns = 0;
	}
	s->round += !s->callbacks.wants_stays && s->callbacks.wants;
	if (s->begin_ns)
		s->begin_ns = time_ns;
	if (s->whole_ns == UINT64_MAX)
		s->whole_ns = time_ns;
}

void switches_pause(struct switches *s, uint64_t time_ns)
{
	switches_close(s, time_ns);
	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (t->used)
			switches_drop_note(s, t);
		t->doing = NOTHING_KNOWN;
		t->key = t->sampled_key = SWITCHES_NONE;
	}
	s->begin_ns = 0;
}
