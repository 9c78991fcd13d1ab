/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where threads block, with their time and the stacks sampled there. The places of a
 * thread are a list, so that its end needs no search.
 */
#include <stdlib.h>
#include <string.h>

#include "src/profiler/switches-internal.h"

#define LONG_NS	   UINT64_C(10000000)
#define MAX_STACKS 32 /* of a key: interpreters call many functions from one place */

static size_t stack_size(const struct switch_stack *stack)
{
	return sizeof(*stack) +
	       ((size_t)stack->n_kernel + stack->n_user) * sizeof(*stack->addresses);
}

void switches_free_stacks(struct switches *s, struct key *k)
{
	for (uint32_t i = 0; i < k->n_stacks; i++) {
		s->stack_bytes -= stack_size(k->stacks[i].stack);
		free(k->stacks[i].stack);
	}
	free(k->stacks);
	k->stacks = NULL;
	k->n_stacks = 0;
}

static uint64_t hash_key(uint32_t thread, uint64_t sp, uint64_t ip, uint64_t object)
{
	return hash_combine(hash_combine(hash_combine(thread, sp), ip), object);
}

uint32_t switches_find_key(const struct switches *s, uint32_t thread, const struct switch_out *o)
{
	uint64_t h = hash_key(thread, o->sp, o->ip, o->object);
	uint32_t slot = hash_index_first(&s->key_index, h), row;

	while ((row = hash_index_row(&s->key_index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&s->key_index, slot, h) &&
		    switches_is_key_of(&s->keys.items[row], thread, o))
			return row;
		slot = hash_index_next(&s->key_index, slot);
	}
	return SWITCHES_NONE;
}

static uint32_t add_key(struct switches *s, uint32_t thread, const struct switch_out *o)
{
	struct switch_thread *t = &s->threads.items[thread];
	uint32_t row = s->free_key;

	if (row != SWITCHES_NONE)
		s->free_key = s->keys.items[row].next;
	else
		row = array_push(&s->keys) ? s->keys.n - 1 : SWITCHES_NONE;
	if (row == SWITCHES_NONE)
		return SWITCHES_NONE;
	s->keys.items[row] = (struct key){.sp = o->sp,
					  .ip = o->ip,
					  .object = o->object,
					  .thread = thread,
					  .next = t->first_key,
					  .used = true};
	if (hash_index_add(&s->key_index, hash_key(thread, o->sp, o->ip, o->object), row) < 0) {
		s->keys.items[row] = (struct key){.next = s->free_key};
		s->free_key = row;
		return SWITCHES_NONE;
	}
	t->first_key = row;
	s->n_keys++;
	return row;
}

uint32_t switches_make_key(struct switches *s, uint32_t thread, const struct switch_out *o)
{
	uint32_t row = switches_find_key(s, thread, o);

	if (row == SWITCHES_NONE)
		row = add_key(s, thread, o);
	s->totals.n_refused += row == SWITCHES_NONE;
	return row;
}

/* Not out of its thread's list: that is the caller's. */
static void free_key_row(struct switches *s, uint32_t row)
{
	struct key *k = &s->keys.items[row];

	(void)hash_index_remove(&s->key_index, hash_key(k->thread, k->sp, k->ip, k->object), row);
	switches_free_stacks(s, k);
	*k = (struct key){.next = s->free_key};
	s->free_key = row;
	s->n_keys--;
}

/* ---- What is told ---- */

static struct switch_wait wait_of(const struct switch_thread *t, const struct key *k,
				  const struct switch_stack *stack, uint64_t ns, uint64_t n)
{
	return (struct switch_wait){
		.pid = t->pid,
		.tid = t->tid,
		.cpu = k ? k->cpu : t->cpu,
		.ip = k ? k->ip : 0,
		.object = k ? k->object : 0,
		.stack = stack,
		.ns = ns,
		.n = n,
		.time_ns = k ? k->time_ns : t->out_ns,
	};
}

static void tell_wait(struct switches *s, const struct switch_wait *w)
{
	if (w->ns == 0 && w->n == 0)
		return;
	s->totals.not_seen_ns += w->stack ? 0 : w->ns;
	s->callbacks.tell(s->ctx, w);
}

static void tell(struct switches *s, const struct switch_thread *t, const struct key *k,
		 const struct switch_stack *stack, uint64_t ns, uint64_t n)
{
	const struct switch_wait w = wait_of(t, k, stack, ns, n);

	tell_wait(s, &w);
}

/* So much of it is one block, the longest. */
static void tell_apart(struct switches *s, const struct switch_thread *t, const struct key *k,
		       const struct switch_stack *stack, uint64_t ns, uint64_t n, uint64_t longest)
{
	if (s->callbacks.longest_apart && n > 1 && longest > 0 && longest < ns) {
		tell(s, t, k, stack, longest, 1);
		ns -= longest;
		n--;
	}
	tell(s, t, k, stack, ns, n);
}

static uint64_t share(uint64_t whole, uint64_t part, uint64_t of)
{
	return (uint64_t)((unsigned __int128)whole * part / of);
}

/* If no block of a kind was sampled, the weights of the other kind count. */
static uint64_t weight(const struct known_stack *k, bool of_long)
{
	return of_long ? k->long_ns : k->short_ns;
}

/* Where nobody knows the places of blocks, a short one that was sampled says nothing of others. */
static void tell_short(struct switches *s, const struct switch_thread *t, struct key *k)
{
	if (!switches_is_anywhere(k))
		return;
	tell(s, t, k, NULL, k->short_ns, k->n);
	k->short_ns = k->n = 0;
}

/* The rests of the shares before go to those behind, so the sum is the whole. */
static void tell_key(struct switches *s, const struct switch_thread *t, struct key *k)
{
	uint64_t short_ns = 0, long_ns = 0, at_short = 0, at_long = 0, short_sum, long_sum;
	bool short_by_long, long_by_long;
	uint32_t lasting =
		t->key != SWITCHES_NONE && t->sampled_key == t->key && &s->keys.items[t->key] == k
			? t->sampled
			: 0;

	if (k->n_stacks == 0) {
		tell_apart(s, t, k, NULL, k->short_ns + k->long_ns, k->n, k->longest_ns);
		k->short_ns = k->long_ns = k->n = k->longest_ns = 0;
		return;
	}
	tell_short(s, t, k);
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
		uint64_t longest = known->longest_ns;

		/* Sampled, but the block lasts: it is all that is known of the key. */
		if (short_sum == 0 && long_sum == 0) {
			ns += i == lasting ? k->short_ns + k->long_ns : 0;
			n += i == lasting ? k->n : 0;
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
		/* Whose the others are is not known; most places have one stack. */
		if (ns >= k->longest_ns && k->longest_ns > longest) {
			longest = k->longest_ns;
			k->longest_ns = 0;
		}
		tell_apart(s, t, k, known->stack, ns, n, longest);
		known->ns = known->n = known->longest_ns = 0;
	}
	k->short_ns = k->long_ns = k->n = k->longest_ns = 0;
}

void switches_tell_thread(struct switches *s, struct switch_thread *t)
{
	for (uint32_t i = t->first_key; i != SWITCHES_NONE; i = s->keys.items[i].next)
		tell_key(s, t, &s->keys.items[i]);
	tell(s, t, NULL, NULL, t->unplaced_ns, t->n_unplaced);
	if (s->callbacks.tell_other && (t->running_ns || t->waiting_ns))
		s->callbacks.tell_other(s->ctx, &(struct switch_other){.pid = t->pid,
								       .tid = t->tid,
								       .cpu = t->cpu,
								       .running_ns = t->running_ns,
								       .waiting_ns = t->waiting_ns,
								       .time_ns = t->since_ns});
	t->unplaced_ns = t->n_unplaced = t->running_ns = t->waiting_ns = 0;
}

/* Nothing happened to the thread until all was read. */
static bool is_note_proven(const struct switch_thread *t, uint64_t time_ns)
{
	return t->note != BLOCK_NOTES_NONE && t->note_read_ns < time_ns;
}

static void tell_noted_part(struct switches *s, const struct switch_thread *t, const struct key *k,
			    const struct switch_stack *stack, uint64_t ns, uint64_t n)
{
	struct switch_wait w = wait_of(t, k, stack, ns, n);

	w.noted = true;
	w.note = block_notes_get(&s->notes, t->note, &w.n_note);
	tell_wait(s, &w);
}

/* A block without a stack of its own gets those of its place in their proportion until now, as in
 * tell_key(). */
__attribute__((noinline)) static void tell_noted(struct switches *s, const struct switch_thread *t,
						 const struct key *k, uint64_t ns, uint64_t n,
						 bool is_long)
{
	uint64_t sum = 0, sum_of_other = 0, at = 0, told = 0;
	bool of_long;

	for (uint32_t i = 0; i < k->n_stacks; i++) {
		sum += weight(&k->stacks[i], is_long);
		sum_of_other += weight(&k->stacks[i], !is_long);
	}
	of_long = sum ? is_long : !is_long;
	sum = sum ? sum : sum_of_other;
	if (k->n_stacks <= 1 || sum == 0) {
		tell_noted_part(s, t, k, k->n_stacks == 1 ? k->stacks[0].stack : NULL, ns, n);
		return;
	}
	for (uint32_t i = 0; i < k->n_stacks; i++) {
		uint64_t before = told;

		at += weight(&k->stacks[i], of_long);
		told = share(ns, at, sum);
		/* The block is one. */
		tell_noted_part(s, t, k, k->stacks[i].stack, told - before, told > before ? n : 0);
		n = told > before ? 0 : n;
	}
}

/* A piece of a block that has a stack of its own; whole: all of the block until now. Few have one,
 * so others do not pay for its locals. */
__attribute__((noinline)) static void credit_sampled(struct switches *s, struct switch_thread *t,
						     struct key *k, uint64_t ns, uint64_t time_ns,
						     uint64_t whole, bool last)
{
	struct known_stack *known = &k->stacks[t->sampled];

	if (is_note_proven(t, time_ns)) {
		tell_noted_part(s, t, k, known->stack, ns, last);
	} else {
		known->ns += ns;
		known->n += last;
		if (last && ns > known->longest_ns)
			known->longest_ns = ns;
	}
	/* A thread that is looked at now and then is found in long blocks more often than in short
	 * ones. */
	if (last && !known->stack->alone)
		*(whole >= LONG_NS ? &known->long_ns : &known->short_ns) +=
			switches_is_anywhere(k) ? 1 : whole;
}

/* Apart, as most places have one stack. */
__attribute__((noinline)) static void note_unsure(struct switches *s, const struct key *k,
						  uint64_t ns)
{
	*(k->n_stacks == 0 ? &s->unseen_ns : &s->split_ns) += ns;
}

void switches_credit(struct switches *s, struct switch_thread *t, uint64_t ns, uint64_t time_ns,
		     bool last)
{
	struct key *k = t->key != SWITCHES_NONE ? &s->keys.items[t->key] : NULL;
	uint64_t whole = time_ns > t->out_ns ? time_ns - t->out_ns : 0;

	if (!k) {
		t->unplaced_ns += ns;
		t->n_unplaced += last;
		return;
	}
	k->cpu = t->cpu;
	k->time_ns = t->out_ns;
	if (last && whole > k->most_ns)
		k->most_ns = whole;
	if (last && whole < LONG_NS) {
		s->short_ns += ns;
		if (k->n_stacks != 1)
			note_unsure(s, k, ns);
	}
	if (t->sampled_key == t->key) {
		credit_sampled(s, t, k, ns, time_ns, whole, last);
		return;
	}
	if (is_note_proven(t, time_ns) && !switches_is_anywhere(k)) {
		tell_noted(s, t, k, ns, last, whole >= LONG_NS);
		return;
	}
	*(whole >= LONG_NS ? &k->long_ns : &k->short_ns) += ns;
	k->n += last;
	if (last && ns > k->longest_ns)
		k->longest_ns = ns;
}

static bool stacks_equal(const struct switch_stack *a, const struct switch_stack *b)
{
	return a->n_kernel == b->n_kernel && a->n_user == b->n_user && a->marker == b->marker &&
	       a->alone == b->alone &&
	       memcmp(a->addresses, b->addresses,
		      ((size_t)a->n_kernel + a->n_user) * sizeof(*a->addresses)) == 0;
}

/* The thread blocks in the same place, so that is what it does in its other blocks there, too. */
static uint32_t replace_unread(struct switches *s, struct key *k, const struct switch_stack *stack)
{
	size_t size = stack_size(stack);
	struct switch_stack *copy = malloc(size);

	if (!copy)
		return SWITCHES_NONE;
	memcpy(copy, stack, size);
	s->stack_bytes += size;
	s->stack_bytes -= stack_size(k->stacks[0].stack);
	free(k->stacks[0].stack);
	k->stacks[0].stack = copy;
	k->varies |= stack->varies;
	return 0;
}

/* Its place among those of the key; SWITCHES_NONE: there is no room for one more. */
uint32_t switches_put_stack(struct switches *s, struct key *k, const struct switch_stack *stack)
{
	size_t size = stack_size(stack);
	struct known_stack *stacks;
	struct switch_stack *copy;

	for (uint32_t i = 0; i < k->n_stacks; i++) {
		if (stacks_equal(k->stacks[i].stack, stack))
			return i;
	}
	if (s->stack_bytes + size > s->max_stack_bytes)
		return SWITCHES_NONE;
	if (switches_is_unread(k) && switches_is_read(stack) && !stack->alone)
		return replace_unread(s, k, stack);
	if (k->n_stacks == MAX_STACKS)
		return SWITCHES_NONE;
	stacks = realloc(k->stacks, (k->n_stacks + 1) * sizeof(*stacks));
	if (!stacks)
		return SWITCHES_NONE;
	k->stacks = stacks;
	copy = malloc(size);
	if (!copy)
		return SWITCHES_NONE;
	memcpy(copy, stack, size);
	s->stack_bytes += size;
	stacks[k->n_stacks] = (struct known_stack){.stack = copy};
	k->varies |= stack->varies;
	return k->n_stacks++;
}

void switches_forget_keys(struct switches *s, struct switch_thread *t)
{
	uint32_t next;

	for (uint32_t i = t->first_key; i != SWITCHES_NONE; i = next) {
		next = s->keys.items[i].next;
		free_key_row(s, i);
	}
	t->first_key = t->key = t->sampled_key = SWITCHES_NONE;
}

void switches_drop_idle_keys(struct switches *s, struct switch_thread *t)
{
	uint32_t *link = &t->first_key;

	while (*link != SWITCHES_NONE) {
		uint32_t row = *link;
		struct key *k = &s->keys.items[row];

		if (row == t->key || k->time_ns != 0) {
			link = &k->next;
			continue;
		}
		*link = k->next;
		if (t->sampled_key == row)
			t->sampled_key = SWITCHES_NONE;
		free_key_row(s, row);
	}
}
