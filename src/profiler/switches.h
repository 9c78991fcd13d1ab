/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From context switches, in the order of time, to how long each thread was blocked, and where.
 *
 * Times are exact: each switch says which thread stops, which one goes on, and when. To copy a
 * stack at each switch would cost too much, so a stack is sampled once and kept with its key:
 * thread, stack pointer and program counter of the program at the switch. All time of a key goes to
 * its stacks. If a key has several stacks, its time is split in proportion to the time of its
 * sampled blocks; blocks of 10 ms and more are many times rarer than short ones, so they are
 * weighed apart. Time for which no stack was ever sampled is reported as such, and never given to
 * another stack. If the places at which threads stop are unknown, each thread has one key: its long
 * blocks are split among the stacks that were read of some of them, and no short block gets
 * another's stack.
 *
 * Excluded threads (of the kernel, idle, our own) have no time here. Times are nanoseconds of any
 * one clock. Every table is bounded, and counts what it refuses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sample/sample.h"

/* Why a thread stopped running: prev_state of sched:sched_switch. */
enum switch_how {
	SWITCH_BLOCKED,	  /* it waits for something, interruptibly (S) or not (D) */
	SWITCH_PREEMPTED, /* it could go on, but has no CPU: R, R+ */
	SWITCH_STOPPED,	  /* by a signal or a debugger, or parked: T, t, P, I */
	SWITCH_DEAD,	  /* it never returns: X, Z */
};
enum switch_how switch_how(int64_t prev_state);

struct switch_out {
	uint64_t time_ns, sp, ip; /* sp and ip 0: its place is unknown */
	uint32_t id;		  /* of the thread, the same as in switches_in() */
	uint32_t pid, tid;	  /* in our pid namespace */
	uint32_t cpu;
	enum switch_how how;
	uint64_t object;	 /* the object that it waits for, part of the place; 0: unknown */
	struct sample_spot spot; /* of the program, for a later walk of its stack */
};

/* Where a thread waits: addresses as the kernel gave them, leaf first. */
struct switch_stack {
	uint32_t n_kernel, n_user;
	/* What it waits for, by its registers. Stacks are compared without it. */
	uint32_t reason;
	uint32_t marker; /* enum profile_marker; PROFILE_N_MARKERS: it reaches the thread's entry */
	bool alone;	 /* it says nothing of other blocks in its place */
	bool varies;	 /* an interpreter runs there: other blocks may have other stacks */
	uint64_t addresses[]; /* the kernel's, then the user's */
};

/* Some time of a thread in a place. */
struct switch_wait {
	uint32_t pid, tid, cpu;
	uint64_t ip, object;		  /* of its place; 0: unknown */
	const struct switch_stack *stack; /* borrowed; NULL: none was sampled */
	uint64_t ns, n;			  /* n: how many blocks ended; 0: one still lasts */
	bool noted;			  /* there is a note, which may be of 0 bytes */
	const uint8_t *note;		  /* n_note bytes, borrowed */
	uint32_t n_note;
	uint64_t time_ns; /* of the last block */
};

struct switch_other {
	uint32_t pid, tid, cpu;
	uint64_t running_ns, waiting_ns; /* on a CPU; waiting for one */
	uint64_t time_ns;		 /* of its last switch */
};

struct switches_callbacks {
	void (*tell)(void *ctx, const struct switch_wait *wait);
	/* Other time of a thread than blocks, since the last call; called with tell(), unless
	 * there is none. NULL: not wanted. */
	void (*tell_other)(void *ctx, const struct switch_other *other);
	/* May there be a note of such a block? For switches_unnoted(), which never offers it
	 * otherwise. NULL: of all. */
	bool (*takes_note)(void *ctx, const struct switch_out *block);
	/* The longest block of a place is reported separately. */
	bool longest_apart;
	/* Is its time wanted from here on? Asked of a thread at its first switch, at the first one
	 * after each switches_close(), and by switches_judge(). NULL: all are wanted. */
	bool (*wants)(void *ctx, const struct switch_out *out);
	bool wants_stays; /* the answer never changes: asked once */
};

/* Of all threads since the last switches_close(): what they did with their time. */
struct switch_totals {
	uint64_t running_ns, waiting_ns, blocked_ns, stopped_ns;
	uint64_t unknown_ns; /* of gaps; records were lost, or contradict each other */
	/* Of threads until they were switched or found standing, since switches_follow(). */
	uint64_t before_ns;
	uint64_t not_seen_ns; /* of blocked_ns: told without a stack */
	uint64_t n_switches, n_broken, n_refused;
};

struct switches_limits {
	uint32_t threads, keys;
	uint64_t stack_bytes; /* of all stacks that are kept */
	uint32_t notes;	      /* of blocks that last */
};

struct switches;
/* callbacks: copied. Functions that end a thread, or a block with a note, switches_pause() and
 * switches_close() call tell. 0 or -ENOMEM. */
int switches_new(struct switches **ret, const struct switches_limits *limits,
		 const struct switches_callbacks *callbacks, void *ctx);
struct switches *switches_free(struct switches *s);

/*
 * From then on all switches are recorded. Of a thread whose first one comes later it is known
 * whether it has been running since then: no other thread came onto its CPU. If it came there
 * itself, it is unknown what it did before that. The same counts from each switches_close() on,
 * until switches_pause().
 */
void switches_follow(struct switches *s, uint64_t time_ns);
/* A thread begins at o->time_ns and waits for a CPU; or (running) it begins another program. Does
 * nothing if the thread is known. */
void switches_begin(struct switches *s, const struct switch_out *o, bool running);
/* A thread was found blocked at o->time_ns; its next switch may contradict that. Or (o->how is
 * SWITCH_PREEMPTED) it was found running or waiting for a CPU: its next switch says which; until
 * then it runs. Does nothing if the thread is known. */
void switches_stands(struct switches *s, const struct switch_out *o);
/* A thread stops running. SWITCH_DEAD reports its time and forgets it. */
void switches_out(struct switches *s, const struct switch_out *o);
/* A thread runs again. Does nothing if the thread never stopped. */
void switches_in(struct switches *s, uint32_t id, uint32_t cpu, uint64_t time_ns);
/*
 * There is a sample with the stack of that block. true: walk it and call switches_stack(), because
 * its thread is wanted and its place is not known well. A small part is also wanted of well-known
 * places, so offer each one.
 */
bool switches_offer_stack(struct switches *s, const struct switch_out *o);
/* How many samples of a CPU in a quarter of a second are enough, as most places of the latest ones
 * are known? UINT32_MAX: they are not. */
uint32_t switches_enough_stacks(struct switches *s);
/*
 * Would a quarter of the samples do? For some seconds up to time_ns, nearly all time of short
 * blocks was in places with one stack; longer ones are read while they last. Call it at least once
 * a second: the first call after too much time in unknown places says no. While a quarter does, one
 * in four blocks of well-known places is wanted.
 */
bool switches_places_known(struct switches *s, uint64_t time_ns);
/* The stack of a block that has just begun, or will begin at once: o is that switch. Copied. */
void switches_stack(struct switches *s, const struct switch_out *o,
		    const struct switch_stack *stack);
/*
 * The same block's stack with more frames, which was read a while after the switch. Call it after
 * all switches up to that time. false: the thread may have run meanwhile, so the stack of
 * switches_stack() stays.
 */
bool switches_better_stack(struct switches *s, const struct switch_out *o,
			   const struct switch_stack *stack);
/*
 * Up to n threads that have been blocked for min_ns or more at time_ns, in places without a known
 * stack; others at the next call. Each place is offered a few times at most, or each block once
 * where places are not known. Blocks in known places are looked at once a second, and offered once
 * if they last a second and much longer than those before; those in places whose only stack lacks
 * the frames of a runtime are offered some more times, each at twice the age. Where stacks vary,
 * each block without a stack of its own is offered once, and one in so many from some stacks on; a
 * stack whose interpreter's frames were not read, or not proven, is none.
 */
uint32_t switches_unseen(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			 struct switch_out *ret, uint32_t n);
/* An offered block could not be read now, or not all of it: it is offered once more, if its place
 * has not been too often. */
void switches_offer_again(struct switches *s, const struct switch_out *block);
/* Is the stack of an offered block of use? alone: it is of this block alone, which must last; else
 * its place has none yet, or stacks vary there. */
bool switches_wants(const struct switches *s, const struct switch_out *block, bool alone);
/* Did an offered block last beyond time_ns? Call it after all switches up to that time. */
bool switches_lasted(const struct switches *s, const struct switch_out *block, uint64_t time_ns);

/*
 * What is known of one block alone, such as the span that its thread is in: read until read_ns,
 * from a thread that should stand still. It is told with the block's time, unless the thread turns
 * out to have run before read_ns, or that is not known. o: the block, as in switches_stack().
 * Copies n bytes, at most BLOCK_NOTES_MAX_BYTES.
 */
void switches_note(struct switches *s, const struct switch_out *o, uint64_t read_ns,
		   const uint8_t *bytes, uint32_t n);
/* The same of a block that switches_unnoted() offered. */
void switches_note_late(struct switches *s, const struct switch_out *o, uint64_t read_ns,
			const uint8_t *bytes, uint32_t n);
/* Up to n threads that have been blocked for min_ns or more at time_ns, without a note; others at
 * the next call. A block is offered ever less often. */
uint32_t switches_unnoted(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			  struct switch_out *ret, uint32_t n);
/* The stack with which the thread waits now; borrowed until the next call. NULL: it does not wait,
 * or its stack is unknown. */
const struct switch_stack *switches_waits(const struct switches *s, uint32_t id,
					  uint64_t *ret_object, uint32_t *ret_pid);
/*
 * Records of a CPU were lost between its last record and this time: what its threads do is unknown
 * until their next switch. SWITCHES_ANY_CPU: it is unknown which CPU lost them.
 */
#define SWITCHES_ANY_CPU UINT32_MAX
void switches_lost(struct switches *s, uint32_t cpu, uint64_t time_ns);
/*
 * No switches were recorded from begin_ns to end_ns, and what threads did then is unknown.
 * Afterwards each thread is assumed to do what it did before, until its next switch.
 */
void switches_gap(struct switches *s, uint64_t begin_ns, uint64_t end_ns);
/* Reports the time of a thread up to time_ns, before it gets another name. */
void switches_tell(struct switches *s, uint32_t id, uint64_t time_ns);
/* The thread has another name since o->time_ns: asks whether it is wanted. */
void switches_judge(struct switches *s, const struct switch_out *o);
/* The thread, or the program in it, has ended: reports its time and forgets it. If it was running,
 * it ran until time_ns; 0: unknown. */
void switches_end(struct switches *s, uint32_t id, uint64_t time_ns);
/* Is anything known of the thread? */
bool switches_knows(const struct switches *s, uint32_t id);
/* Reports all time up to time_ns. A block that lasts is reported up to then, and continues. */
void switches_close(struct switches *s, uint64_t time_ns);
/* Does the same; then the time of each thread is unknown, and not counted, until its next switch.
 * */
void switches_pause(struct switches *s, uint64_t time_ns);

/* Since the last switches_clear_totals(). */
const struct switch_totals *switches_totals(const struct switches *s);
void switches_clear_totals(struct switches *s);
