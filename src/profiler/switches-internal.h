/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of switches.h: two tables, threads with what they do now (switches.c), and keys, the
 * places where they block, with their time (switch-places.c).
 */
#include "src/profile/profile.h"
#include "src/profiler/block-notes.h"
#include "src/profiler/switches.h"
#include "util/array.h"
#include "util/hash.h"

#define SWITCHES_NONE	UINT32_MAX /* no row */
#define SWITCHES_RECENT 4096

/* RUNNABLE: it runs, or waits for a CPU. */
enum doing { NOTHING_KNOWN, RUNNING, RUNNABLE, BLOCKED, PREEMPTED, STOPPED, LOST };

struct switch_thread {
	uint32_t id, pid, tid, cpu;
	enum doing doing;
	uint64_t since_ns; /* what was before is accounted for */
	uint64_t out_ns;   /* when it stopped running */
	uint32_t key;	   /* of the block; SWITCHES_NONE: there was no room */
	/* A stack that was sampled of this block, or the next. */
	uint32_t sampled_key, sampled;
	uint64_t sampled_ns; /* when, as its sample says */
	uint32_t first_key;  /* of its list; SWITCHES_NONE: none */
	uint32_t last_key;   /* that switches_key_of() found; it may be gone */
	/* The block that was offered last, by when it began; 0: none. When it ended; 0: not yet. */
	uint64_t offered_ns, offered_end_ns;
	uint64_t offered_at_ns;	 /* when it was offered */
	struct sample_spot spot; /* of the block */
	/* Of the block, or, while the thread runs, of the next one. */
	uint32_t note; /* BLOCK_NOTES_NONE: none */
	uint32_t note_offers;
	uint64_t note_read_ns, note_sp, note_ip;
	/* What has no key. */
	uint64_t unplaced_ns, n_unplaced;
	uint64_t running_ns, waiting_ns; /* to be told */
	bool used, wanted;
	uint32_t asked; /* whether it is wanted: the round in which somebody asked last */
	bool assumed;	/* that it does so: there was a gap since */
	bool again;	/* offer this block once more */
};

struct known_stack {
	struct switch_stack *stack;
	/* Of the sampled blocks, for the others of the key: their time; or, where places are not
	 * known, their number. */
	uint64_t short_ns, long_ns;
	/* To be told: these blocks' own time, and that of the longest which ended. */
	uint64_t ns, n, longest_ns;
};

struct key {
	uint64_t sp, ip, object;
	uint32_t thread, next; /* of the thread's list, and of those that are free */
	uint32_t cpu, n_stacks, n_sampled, n_offers, n_again;
	struct known_stack *stacks;
	/* To be told: of blocks without a stack of their own. */
	uint64_t short_ns, long_ns, n, longest_ns;
	uint64_t time_ns;
	uint64_t most_ns; /* of a block that ended, ever */
	bool used, varies;
};

/* It is the whole thread's, for nobody knows where it blocks. */
static inline bool switches_is_anywhere(const struct key *k)
{
	return k->sp == 0 && k->ip == 0;
}

/* With all frames of its runtime or interpreter. */
static inline bool switches_is_read(const struct switch_stack *stack)
{
	return stack->marker != PROFILE_MARKER_RUNTIME_LATE &&
	       stack->marker != PROFILE_MARKER_RUNTIME_UNPROVEN;
}

/* All that is known of the place is one stack, without these frames. Where stacks vary, each block
 * wants one of its own. */
static inline bool switches_is_unread(const struct key *k)
{
	return k->n_stacks == 1 && !k->varies && !switches_is_read(k->stacks[0].stack);
}

struct switch_cpu {
	uint64_t last_ns; /* of its last record */
	/* The thread that came there last, and when. */
	uint64_t in_ns;
	uint32_t id;
};

struct switches {
	struct switches_callbacks callbacks;
	void *ctx;
	ARRAY(struct switch_thread) threads;
	ARRAY(struct key) keys;
	struct hash_index thread_index, key_index;
	/* Rows of threads that were switched last, by their number: a row may be another's by now.
	 * So few threads run between two switches of one that the index is seldom asked. */
	uint32_t recent[SWITCHES_RECENT];
	uint32_t free_thread, free_key, n_keys;
	uint32_t next_offer; /* the thread to look at first */
	/* By row of a thread, 1: the last look found nothing to offer. Cleared where it begins to
	 * block; once a second, since then, all are looked at. */
	ARRAY(uint8_t) settled;
	uint64_t looked_ns;
	uint32_t next_note; /* the same, for notes */
	uint32_t round;	    /* of questions whether a thread is wanted */
	uint64_t stack_bytes, max_stack_bytes;
	/* Samples of blocks since the last count of those that are enough, and of these the ones in
	 * places with few samples, and with several stacks. */
	uint32_t n_offered, n_new, n_split, enough;
	/* Time of short blocks since the second began in which places are looked at, and of these
	 * the ones without a stack and those with several; the seconds in a row that knew them. */
	uint64_t second_ns, short_ns, unseen_ns, split_ns;
	uint32_t n_known;
	struct switch_cpu *cpus; /* by number */
	/* Time counts from then on, of threads that had no switch yet; 0: it does not. */
	uint64_t begin_ns;
	uint64_t whole_ns; /* no switch is missing since; UINT64_MAX: one may be */
	struct switch_totals totals;
	struct block_notes notes;
};

static inline void switches_drop_note(struct switches *s, struct switch_thread *t)
{
	if (t->note == BLOCK_NOTES_NONE)
		return;
	block_notes_drop(&s->notes, t->note);
	t->note = BLOCK_NOTES_NONE;
}

/* ---- switch-places.c ---- */

static inline bool switches_is_key_of(const struct key *k, uint32_t thread,
				      const struct switch_out *o)
{
	return k->thread == thread && k->sp == o->sp && k->ip == o->ip && k->object == o->object;
}
/* The key of a thread's place; SWITCHES_NONE: there is none. */
uint32_t switches_find_key(const struct switches *s, uint32_t thread, const struct switch_out *o);
/* The same, made if there was none; SWITCHES_NONE: there is no room, which is counted. */
uint32_t switches_make_key(struct switches *s, uint32_t thread, const struct switch_out *o);
/* The same, at each block: most threads wait in one place. Its row may be another thread's by now,
 * or free. */
static inline uint32_t switches_key_of(struct switches *s, uint32_t thread,
				       const struct switch_out *o)
{
	uint32_t *last = &s->threads.items[thread].last_key;
	const struct key *k = *last < s->keys.n ? &s->keys.items[*last] : NULL;

	if (!k || !k->used || !switches_is_key_of(k, thread, o))
		*last = switches_make_key(s, thread, o);
	return *last;
}
/* Tells all time of the thread that was not told yet. */
void switches_tell_thread(struct switches *s, struct switch_thread *t);
/* A piece of a block, up to time_ns; last: it ended there. */
void switches_credit(struct switches *s, struct switch_thread *t, uint64_t ns, uint64_t time_ns,
		     bool last);
/* The stack's place among those of the key; SWITCHES_NONE: there is no room for one more. */
uint32_t switches_put_stack(struct switches *s, struct key *k, const struct switch_stack *stack);
void switches_forget_keys(struct switches *s, struct switch_thread *t);
/* Makes room for others: drops the keys of which there was nothing to tell. */
void switches_drop_idle_keys(struct switches *s, struct switch_thread *t);
void switches_free_stacks(struct switches *s, struct key *k);

/* ---- switches.c ---- */

/* SWITCHES_NONE: not known. */
uint32_t switches_find_thread(const struct switches *s, uint32_t id);
/* The thread of a switch; SWITCHES_NONE: its time is not taken. */
uint32_t switches_thread_of(struct switches *s, const struct switch_out *o);
