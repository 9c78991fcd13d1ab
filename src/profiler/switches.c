/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables: threads with what they do now, and keys with their time. Keys of a thread are a list,
 * so that its end costs no search.
 *
 * Both events of a switch, the record of the switch itself and its sampled stack, may come in
 * either order. A sampled stack belongs to the block that lasts, or, while the thread still runs,
 * to the one about to begin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/switches.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/hash.h"

#define NONE	   UINT32_MAX
#define LONG_NS	   UINT64_C(10000000)
#define MAX_STACKS 8  /* of a key */
#define WELL_KNOWN 16 /* samples of one stack, from which on only one in so many is looked at */
#define MAX_CPUS   8192
#define MAX_OFFERS 3 /* of a place */

#define STATE_BLOCKED 0x3  /* S, D */
#define STATE_STOPPED 0xc  /* T, t */
#define STATE_DEAD    0x30 /* X, Z: and the other way round before Linux 4.14 */
#define STATE_IDLE    0xc0 /* P, I */

enum doing { NOTHING_KNOWN, RUNNING, BLOCKED, PREEMPTED, STOPPED, LOST };

struct switch_thread {
	uint32_t id, pid, tid, cpu;
	enum doing doing;
	uint64_t since_ns; /* what was before is accounted for */
	uint64_t out_ns;   /* when it stopped running */
	uint32_t key;	   /* of the block; NONE: there was no room */
	/* A stack that was sampled of this block, or the next. */
	uint32_t sampled_key, sampled;
	uint32_t first_key; /* of its list; NONE: none */
	/* The block that was offered last, by when it began; 0: none. When it ended; 0: not yet. */
	uint64_t offered_ns, offered_end_ns;
	uint64_t regs[SWITCH_REGS]; /* of the block */
	/* What has no key. */
	uint64_t unplaced_ns, n_unplaced;
	bool used, wanted;
	bool assumed; /* that it does so: there was a gap since */
};

struct known_stack {
	struct switch_stack *stack;
	/* Of the sampled blocks: for the others of the key. */
	uint64_t short_ns, long_ns;
	/* To be told: these blocks' own time. */
	uint64_t ns, n;
};

struct key {
	uint64_t sp, ip;
	uint32_t thread, next; /* of the thread's list, and of those that are free */
	uint32_t cpu, n_stacks, n_sampled, n_offers;
	struct known_stack *stacks;
	/* To be told: of blocks without a stack of their own. */
	uint64_t short_ns, long_ns, n;
	uint64_t time_ns;
	bool used;
};

struct switches {
	struct switches_callbacks callbacks;
	void *ctx;
	ARRAY(struct switch_thread) threads;
	ARRAY(struct key) keys;
	struct hash_index thread_index, key_index;
	uint32_t free_thread, free_key, n_keys;
	uint32_t next_offer; /* the thread to look at first */
	uint64_t stack_bytes, max_stack_bytes;
	uint64_t *last_ns; /* by CPU: of its last record */
	struct switch_totals totals;
};

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
	s->threads.max = limits->threads;
	s->keys.max = limits->keys;
	s->max_stack_bytes = limits->stack_bytes;
	s->free_thread = s->free_key = NONE;
	s->last_ns = calloc(MAX_CPUS, sizeof(*s->last_ns));
	if (!s->last_ns) {
		switches_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static size_t stack_size(const struct switch_stack *stack)
{
	return sizeof(*stack) +
	       ((size_t)stack->n_kernel + stack->n_user) * sizeof(*stack->addresses);
}

static void free_stacks(struct switches *s, struct key *k)
{
	for (uint32_t i = 0; i < k->n_stacks; i++) {
		s->stack_bytes -= stack_size(k->stacks[i].stack);
		free(k->stacks[i].stack);
	}
	free(k->stacks);
	k->stacks = NULL;
	k->n_stacks = 0;
}

struct switches *switches_free(struct switches *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->keys.n; i++)
		free_stacks(s, &s->keys.items[i]);
	array_deinit(&s->threads);
	array_deinit(&s->keys);
	hash_index_deinit(&s->thread_index);
	hash_index_deinit(&s->key_index);
	free(s->last_ns);
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

static uint64_t hash_key(uint32_t thread, uint64_t sp, uint64_t ip)
{
	return hash_combine(hash_combine(thread, sp), ip);
}

static uint32_t find_thread(const struct switches *s, uint32_t id)
{
	uint64_t h = hash_thread(id);
	uint32_t slot = hash_index_first(&s->thread_index, h), row;

	while ((row = hash_index_row(&s->thread_index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&s->thread_index, slot, h) && s->threads.items[row].id == id)
			return row;
		slot = hash_index_next(&s->thread_index, slot);
	}
	return NONE;
}

static uint32_t take_thread_row(struct switches *s)
{
	uint32_t row = s->free_thread;

	if (row != NONE) {
		s->free_thread = s->threads.items[row].first_key;
		return row;
	}
	return array_push(&s->threads) ? s->threads.n - 1 : NONE;
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

	if (row == NONE)
		return NONE;
	s->threads.items[row] = (struct switch_thread){.id = o->id,
						       .pid = o->pid,
						       .tid = o->tid,
						       .key = NONE,
						       .sampled_key = NONE,
						       .first_key = NONE,
						       .used = true,
						       .wanted = !wants || wants(s->ctx, o)};
	if (hash_index_add(&s->thread_index, hash_thread(o->id), row) < 0) {
		free_thread_row(s, row);
		return NONE;
	}
	return row;
}

/* The thread of a switch; NONE: its time is not taken. The end of the one that had its number
 * before may have been lost. */
static uint32_t thread_of(struct switches *s, const struct switch_out *o)
{
	uint32_t row = find_thread(s, o->id);

	if (row != NONE && s->threads.items[row].pid != o->pid) {
		switches_end(s, o->id);
		row = NONE;
	}
	if (row == NONE)
		row = add_thread(s, o);
	s->totals.n_refused += row == NONE;
	return row != NONE && s->threads.items[row].wanted ? row : NONE;
}

static uint32_t find_key(const struct switches *s, uint32_t thread, uint64_t sp, uint64_t ip)
{
	uint64_t h = hash_key(thread, sp, ip);
	uint32_t slot = hash_index_first(&s->key_index, h), row;

	while ((row = hash_index_row(&s->key_index, slot)) != HASH_INDEX_NONE) {
		const struct key *k = &s->keys.items[row];

		if (hash_index_match(&s->key_index, slot, h) && k->thread == thread &&
		    k->sp == sp && k->ip == ip)
			return row;
		slot = hash_index_next(&s->key_index, slot);
	}
	return NONE;
}

static uint32_t add_key(struct switches *s, uint32_t thread, uint64_t sp, uint64_t ip)
{
	struct switch_thread *t = &s->threads.items[thread];
	uint32_t row = s->free_key;

	if (row != NONE)
		s->free_key = s->keys.items[row].next;
	else
		row = array_push(&s->keys) ? s->keys.n - 1 : NONE;
	if (row == NONE)
		return NONE;
	s->keys.items[row] = (struct key){
		.sp = sp, .ip = ip, .thread = thread, .next = t->first_key, .used = true};
	if (hash_index_add(&s->key_index, hash_key(thread, sp, ip), row) < 0) {
		s->keys.items[row] = (struct key){.next = s->free_key};
		s->free_key = row;
		return NONE;
	}
	t->first_key = row;
	s->n_keys++;
	return row;
}

static uint32_t key_of(struct switches *s, uint32_t thread, const struct switch_out *o)
{
	uint32_t row = find_key(s, thread, o->sp, o->ip);

	if (row == NONE)
		row = add_key(s, thread, o->sp, o->ip);
	s->totals.n_refused += row == NONE;
	return row;
}

/* Not out of its thread's list: that is the caller's. */
static void free_key_row(struct switches *s, uint32_t row)
{
	struct key *k = &s->keys.items[row];

	(void)hash_index_remove(&s->key_index, hash_key(k->thread, k->sp, k->ip), row);
	free_stacks(s, k);
	*k = (struct key){.next = s->free_key};
	s->free_key = row;
	s->n_keys--;
}

bool switches_offer_stack(struct switches *s, const struct switch_out *o)
{
	uint32_t row = thread_of(s, o), key = row != NONE ? find_key(s, row, o->sp, o->ip) : NONE;
	struct key *k = key != NONE ? &s->keys.items[key] : NULL;

	if (row == NONE)
		return false;
	return !k || k->n_stacks != 1 || k->n_sampled < WELL_KNOWN ||
	       k->n_sampled++ % WELL_KNOWN == 0;
}

/* ---- What is told ---- */

static void tell(struct switches *s, const struct switch_thread *t, const struct key *k,
		 const struct switch_stack *stack, uint64_t ns, uint64_t n)
{
	const struct switch_wait w = {
		.pid = t->pid,
		.tid = t->tid,
		.cpu = k ? k->cpu : t->cpu,
		.stack = stack,
		.ns = ns,
		.n = n,
		.time_ns = k ? k->time_ns : t->out_ns,
	};

	if (ns == 0 && n == 0)
		return;
	s->totals.not_seen_ns += stack ? 0 : ns;
	s->callbacks.tell(s->ctx, &w);
}

static uint64_t share(uint64_t whole, uint64_t part, uint64_t of)
{
	return (uint64_t)((unsigned __int128)whole * part / of);
}

/* A kind of blocks of which none was sampled goes by the other. */
static uint64_t weight(const struct known_stack *k, bool of_long)
{
	return of_long ? k->long_ns : k->short_ns;
}

/* The rests of the shares before go to those behind, so the sum is the whole. */
static void tell_key(struct switches *s, const struct switch_thread *t, struct key *k)
{
	uint64_t short_ns = 0, long_ns = 0, at_short = 0, at_long = 0, short_sum, long_sum;
	bool short_by_long, long_by_long;

	if (k->n_stacks == 0) {
		tell(s, t, k, NULL, k->short_ns + k->long_ns, k->n);
		k->short_ns = k->long_ns = k->n = 0;
		return;
	}
	for (uint32_t i = 0; i < k->n_stacks; i++) {
		short_ns += k->stacks[i].short_ns;
		long_ns += k->stacks[i].long_ns;
	}
	short_by_long = short_ns == 0;
	long_by_long = long_ns > 0;
	short_sum = short_by_long ? long_ns : short_ns;
	long_sum = long_by_long ? long_ns : short_ns;
	for (uint32_t i = 0; i < k->n_stacks; i++) {
		struct known_stack *known = &k->stacks[i];
		uint64_t ns = known->ns, n = known->n, before = at_short;

		/* Sampled, but the block lasts: it is all that is known of the key. */
		if (short_sum == 0 && long_sum == 0) {
			ns += i == 0 ? k->short_ns + k->long_ns : 0;
			n += i == 0 ? k->n : 0;
		} else {
			at_short += weight(known, short_by_long);
			ns += share(k->short_ns, at_short, short_sum) -
			      share(k->short_ns, before, short_sum);
			n += share(k->n, at_short, short_sum) - share(k->n, before, short_sum);
			before = at_long;
			at_long += weight(known, long_by_long);
			ns += share(k->long_ns, at_long, long_sum) -
			      share(k->long_ns, before, long_sum);
		}
		tell(s, t, k, known->stack, ns, n);
		known->ns = known->n = 0;
	}
	k->short_ns = k->long_ns = k->n = 0;
}

static void tell_thread(struct switches *s, struct switch_thread *t)
{
	for (uint32_t i = t->first_key; i != NONE; i = s->keys.items[i].next)
		tell_key(s, t, &s->keys.items[i]);
	tell(s, t, NULL, NULL, t->unplaced_ns, t->n_unplaced);
	t->unplaced_ns = t->n_unplaced = 0;
}

/* ---- Time ---- */

static bool is_sampled(const struct switch_thread *t)
{
	return t->key != NONE && t->sampled_key == t->key;
}

/* A piece of a block, up to time_ns; the last one: it ended there. */
static void credit(struct switches *s, struct switch_thread *t, uint64_t ns, uint64_t time_ns,
		   bool last)
{
	struct key *k = t->key != NONE ? &s->keys.items[t->key] : NULL;
	uint64_t whole = time_ns > t->out_ns ? time_ns - t->out_ns : 0;
	struct known_stack *known;

	if (!k) {
		t->unplaced_ns += ns;
		t->n_unplaced += last;
		return;
	}
	k->cpu = t->cpu;
	k->time_ns = t->out_ns;
	if (!is_sampled(t)) {
		*(whole >= LONG_NS ? &k->long_ns : &k->short_ns) += ns;
		k->n += last;
		return;
	}
	known = &k->stacks[t->sampled];
	known->ns += ns;
	known->n += last;
	if (last && whole >= LONG_NS)
		known->long_ns += whole;
	else if (last)
		known->short_ns += whole;
}

/* What the thread has been doing is accounted for up to time_ns; last: it ends there. */
static void account(struct switches *s, struct switch_thread *t, uint64_t time_ns, bool last)
{
	uint64_t ns = time_ns > t->since_ns ? time_ns - t->since_ns : 0;

	switch (t->doing) {
	case NOTHING_KNOWN:
		break;
	case RUNNING:
		s->totals.running_ns += ns;
		break;
	case BLOCKED:
		s->totals.blocked_ns += ns;
		credit(s, t, ns, time_ns, last);
		break;
	case PREEMPTED:
		s->totals.waiting_ns += ns;
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
	if (cpu < MAX_CPUS && time_ns > s->last_ns[cpu])
		s->last_ns[cpu] = time_ns;
}

/* Two of a kind in a row: the one between them is missing, and the time is anybody's. */
static void doubt(struct switches *s, struct switch_thread *t)
{
	s->totals.n_broken += !t->assumed;
	t->offered_ns = 0;
	t->doing = LOST;
}

void switches_out(struct switches *s, const struct switch_out *o)
{
	static const enum doing next[] = {[SWITCH_BLOCKED] = BLOCKED,
					  [SWITCH_PREEMPTED] = PREEMPTED,
					  [SWITCH_STOPPED] = STOPPED,
					  [SWITCH_DEAD] = STOPPED};
	uint64_t before_ns = o->cpu < MAX_CPUS ? s->last_ns[o->cpu] : 0;
	uint32_t row = thread_of(s, o);
	struct switch_thread *t;

	note_record(s, o->cpu, o->time_ns);
	if (row == NONE) {
		if (o->how == SWITCH_DEAD)
			switches_end(s, o->id);
		return;
	}
	s->totals.n_switches++;
	t = &s->threads.items[row];
	/* It went on here, and nobody said so: after the CPU's last record. */
	if (t->doing == BLOCKED || t->doing == PREEMPTED || t->doing == STOPPED) {
		if (!t->assumed)
			account(s, t, before_ns, true);
		doubt(s, t);
	}
	account(s, t, o->time_ns, true);
	if (o->how == SWITCH_DEAD) {
		switches_end(s, o->id);
		return;
	}
	t->doing = next[o->how];
	t->since_ns = t->out_ns = o->time_ns;
	t->cpu = o->cpu;
	t->assumed = false;
	memcpy(t->regs, o->regs, sizeof(t->regs));
	t->key = o->how == SWITCH_BLOCKED ? key_of(s, row, o) : NONE;
}

void switches_in(struct switches *s, uint32_t id, uint32_t cpu, uint64_t time_ns)
{
	uint32_t row = find_thread(s, id);
	struct switch_thread *t;

	note_record(s, cpu, time_ns);
	if (row == NONE || !s->threads.items[row].wanted)
		return;
	t = &s->threads.items[row];
	if (t->doing == RUNNING)
		doubt(s, t);
	if (t->offered_ns == t->out_ns && !t->offered_end_ns)
		t->offered_end_ns = time_ns;
	account(s, t, time_ns, true);
	t->doing = RUNNING;
	t->since_ns = time_ns;
	t->cpu = cpu;
	t->assumed = false;
	t->key = t->sampled_key = NONE;
}

static bool stacks_equal(const struct switch_stack *a, const struct switch_stack *b)
{
	return a->n_kernel == b->n_kernel && a->n_user == b->n_user && a->marker == b->marker &&
	       memcmp(a->addresses, b->addresses,
		      ((size_t)a->n_kernel + a->n_user) * sizeof(*a->addresses)) == 0;
}

/* Its place among those of the key; NONE: there is no room for one more. */
static uint32_t put_stack(struct switches *s, struct key *k, const struct switch_stack *stack)
{
	size_t size = stack_size(stack);
	struct known_stack *stacks;
	struct switch_stack *copy;

	for (uint32_t i = 0; i < k->n_stacks; i++) {
		if (stacks_equal(k->stacks[i].stack, stack))
			return i;
	}
	if (k->n_stacks == MAX_STACKS || s->stack_bytes + size > s->max_stack_bytes)
		return NONE;
	stacks = realloc(k->stacks, (k->n_stacks + 1) * sizeof(*stacks));
	if (!stacks)
		return NONE;
	k->stacks = stacks;
	copy = malloc(size);
	if (!copy)
		return NONE;
	memcpy(copy, stack, size);
	s->stack_bytes += size;
	stacks[k->n_stacks] = (struct known_stack){.stack = copy};
	return k->n_stacks++;
}

void switches_stack(struct switches *s, const struct switch_out *o,
		    const struct switch_stack *stack)
{
	uint32_t row = thread_of(s, o), key = row != NONE ? key_of(s, row, o) : NONE, place;
	struct switch_thread *t;

	if (key == NONE)
		return;
	place = put_stack(s, &s->keys.items[key], stack);
	t = &s->threads.items[row];
	if (place == NONE) {
		s->totals.n_refused++;
		return;
	}
	/* Of a block that is over: its record was lost, or came late. */
	if (t->doing == BLOCKED && t->key != key)
		return;
	s->keys.items[key].n_sampled++;
	t->sampled_key = key;
	t->sampled = place;
}

uint32_t switches_unseen(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			 struct switch_out *ret, uint32_t n)
{
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < s->threads.n && n_found < n; i++) {
		uint32_t row = s->next_offer < s->threads.n ? s->next_offer : 0;
		struct switch_thread *t = &s->threads.items[row];
		struct key *k = t->key != NONE ? &s->keys.items[t->key] : NULL;

		s->next_offer = row + 1;
		if (!t->used || t->doing != BLOCKED || !k || k->n_stacks > 0 ||
		    k->n_offers == MAX_OFFERS || t->sampled_key == t->key ||
		    t->out_ns + min_ns > time_ns)
			continue;
		k->n_offers++;
		t->offered_ns = t->out_ns;
		t->offered_end_ns = 0;
		ret[n_found] = (struct switch_out){.time_ns = t->out_ns,
						   .sp = k->sp,
						   .ip = k->ip,
						   .id = t->id,
						   .pid = t->pid,
						   .tid = t->tid,
						   .cpu = t->cpu,
						   .how = SWITCH_BLOCKED};
		memcpy(ret[n_found++].regs, t->regs, sizeof(t->regs));
	}
	return n_found;
}

bool switches_lasted(const struct switches *s, const struct switch_out *block, uint64_t time_ns)
{
	uint32_t row = find_thread(s, block->id);
	const struct switch_thread *t = row != NONE ? &s->threads.items[row] : NULL;

	if (!t || t->pid != block->pid || t->offered_ns != block->time_ns)
		return false;
	return t->offered_end_ns ? t->offered_end_ns > time_ns
				 : t->doing == BLOCKED && t->out_ns == block->time_ns;
}

static void lose_thread(struct switches *s, struct switch_thread *t)
{
	account(s, t, t->cpu < MAX_CPUS ? s->last_ns[t->cpu] : 0, false);
	t->doing = LOST;
	t->offered_ns = 0;
	t->key = t->sampled_key = NONE;
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
}

void switches_gap(struct switches *s, uint64_t begin_ns, uint64_t end_ns)
{
	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (!t->used || t->doing == NOTHING_KNOWN || t->since_ns >= end_ns)
			continue;
		account(s, t, begin_ns, false);
		s->totals.unknown_ns += end_ns - t->since_ns;
		t->since_ns = end_ns;
		t->assumed = true;
	}
}

static void forget_keys(struct switches *s, struct switch_thread *t)
{
	uint32_t next;

	for (uint32_t i = t->first_key; i != NONE; i = next) {
		next = s->keys.items[i].next;
		free_key_row(s, i);
	}
	t->first_key = t->key = t->sampled_key = NONE;
}

void switches_end(struct switches *s, uint32_t id)
{
	uint32_t row = find_thread(s, id);
	struct switch_thread *t;

	if (row == NONE)
		return;
	t = &s->threads.items[row];
	tell_thread(s, t);
	forget_keys(s, t);
	(void)hash_index_remove(&s->thread_index, hash_thread(id), row);
	free_thread_row(s, row);
}

/* Room for others: keys of which there was nothing to tell. */
static void drop_idle_keys(struct switches *s, struct switch_thread *t)
{
	uint32_t *link = &t->first_key;

	while (*link != NONE) {
		uint32_t row = *link;
		struct key *k = &s->keys.items[row];

		if (row == t->key || k->time_ns != 0) {
			link = &k->next;
			continue;
		}
		*link = k->next;
		if (t->sampled_key == row)
			t->sampled_key = NONE;
		free_key_row(s, row);
	}
}

void switches_close(struct switches *s, uint64_t time_ns)
{
	bool crowded = s->n_keys > s->keys.max / 2 || s->stack_bytes > s->max_stack_bytes / 2;

	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		if (!t->used)
			continue;
		account(s, t, time_ns, false);
		tell_thread(s, t);
		if (crowded)
			drop_idle_keys(s, t);
		for (uint32_t k = t->first_key; k != NONE; k = s->keys.items[k].next)
			s->keys.items[k].time_ns = 0;
	}
}

void switches_pause(struct switches *s, uint64_t time_ns)
{
	switches_close(s, time_ns);
	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct switch_thread *t = &s->threads.items[i];

		t->doing = NOTHING_KNOWN;
		t->key = t->sampled_key = NONE;
	}
}
