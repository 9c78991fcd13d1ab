/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Context switches in the order of time -> how long each thread was blocked, and where.
 *
 * Time is exact: each switch says who stops running, who goes on, and when. Copying a stack at each
 * switch would cost too much, so it is learned once and kept with its key: thread, stack pointer
 * and program counter of the program at the switch. All time of a key goes to its stacks. A key
 * with several stacks is split in proportion to the time of those of its blocks that were sampled;
 * blocks from 10 ms on are many times rarer than short ones, so they are weighed apart. Time for
 * which no stack was ever sampled is reported as such, never given to another stack. Where the
 * places at which threads stop are unknown, each thread has one key: its long blocks are split
 * among the stacks that were read of some of them, and no short one is given another's stack.
 *
 * Threads that are left out (of the kernel, idle, our own) have no time here. Times are
 * nanoseconds of any one clock. Everything is bounded; what finds no room is counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a thread stopped running: prev_state of sched:sched_switch. */
enum switch_how {
	SWITCH_BLOCKED,	  /* it waits for something, interruptibly (S) or not (D) */
	SWITCH_PREEMPTED, /* it could go on, but has no CPU: R, R+ */
	SWITCH_STOPPED,	  /* by a signal or a debugger, or parked: T, t, P, I */
	SWITCH_DEAD,	  /* it never returns: X, Z */
};
enum switch_how switch_how(int64_t prev_state);

#define SWITCH_REGS 4

struct switch_out {
	uint64_t time_ns, sp, ip; /* 0, 0: nobody knows where it stops */
	uint32_t id;		  /* of the thread, as switches_in() will have it */
	uint32_t pid, tid;	  /* as others know it */
	uint32_t cpu;
	enum switch_how how;
	uint64_t object; /* what it waits for, and part of the place; 0: not known, or not asked */
	uint64_t regs[SWITCH_REGS]; /* of the program, for whoever walks its stack later */
};

/* Where a thread waits: addresses as the kernel gave them, leaf first. */
struct switch_stack {
	uint32_t n_kernel, n_user;
	/* What it waits for, as far as its registers tell. No part of what makes stacks equal. */
	uint32_t reason;
	uint32_t marker; /* enum profile_marker; PROFILE_N_MARKERS: it reaches the thread's entry */
	bool alone;	 /* says nothing of other blocks in its place */
	uint64_t addresses[]; /* the kernel's, then the user's */
};

/* Some time of a thread in a place. */
struct switch_wait {
	uint32_t pid, tid, cpu;
	uint64_t ip, object;		  /* of its place; 0: not known */
	const struct switch_stack *stack; /* borrowed; NULL: none was seen */
	uint64_t ns, n;			  /* of so many blocks that ended; 0: one still lasts */
	uint64_t time_ns;		  /* of the last of them */
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
	/* The longest block of a place is reported separately. */
	bool longest_apart;
	/* Asked once of a thread, at its first switch; NULL: all are wanted. */
	bool (*wants)(void *ctx, const struct switch_out *first);
};

/* Of all threads since the last switches_close(): what they did with their time. */
struct switch_totals {
	uint64_t running_ns, waiting_ns, blocked_ns, stopped_ns;
	uint64_t unknown_ns;  /* of gaps; records were lost, or contradict each other */
	uint64_t not_seen_ns; /* of blocked_ns: told without a stack */
	uint64_t n_switches, n_broken, n_refused;
};

struct switches_limits {
	uint32_t threads, keys;
	uint64_t stack_bytes; /* of all stacks that are kept */
};

struct switches;
/* tell is called by what ends a thread, and by switches_pause() and switches_close(). 0 or -ENOMEM.
 */
int switches_new(struct switches **ret, const struct switches_limits *limits,
		 const struct switches_callbacks *callbacks, void *ctx);
struct switches *switches_free(struct switches *s);

/* A thread begins at o->time_ns, and waits for a CPU; or, running, begins another program. One that
 * is known already is left as it is. */
void switches_begin(struct switches *s, const struct switch_out *o, bool running);
/* A thread stops running. After SWITCH_DEAD it is forgotten, its time told. */
void switches_out(struct switches *s, const struct switch_out *o);
/* A thread goes on; one that never stopped is ignored. */
void switches_in(struct switches *s, uint32_t id, uint32_t cpu, uint64_t time_ns);
/*
 * The stack of that block is at hand: true if it is to be told by switches_stack(), because its
 * thread's time is taken, and the place is not known well. Of a place that is, one in so many is
 * wanted all the same: so each offer counts.
 */
bool switches_offer_stack(struct switches *s, const struct switch_out *o);
/* The stack of a block that just began, or is about to: o is that switch. Copied. */
void switches_stack(struct switches *s, const struct switch_out *o,
		    const struct switch_stack *stack);
/*
 * The same block's stack with more in it, which was read a while after the switch: told once all
 * switches up to then have been given. false: the thread may have run before that, so the stack of
 * switches_stack() stands.
 */
bool switches_better_stack(struct switches *s, const struct switch_out *o,
			   const struct switch_stack *stack);
/*
 * Up to n threads that have been blocked for min_ns or more at time_ns, in places without a known
 * stack; others at the next call. Each place is offered a few times at most, or each block once
 * where places are not known. Blocks in known places are offered once if they last a second and
 * much longer than those before.
 */
uint32_t switches_unseen(struct switches *s, uint64_t time_ns, uint64_t min_ns,
			 struct switch_out *ret, uint32_t n);
/* Whether there is a stack of the block's place. */
bool switches_knows(const struct switches *s, const struct switch_out *block);
/* Whether an offered block lasted beyond time_ns. All switches up to then have been given. */
bool switches_lasted(const struct switches *s, const struct switch_out *block, uint64_t time_ns);
/* What the thread waits for now, as far as its stack is known; NULL: nothing, or nobody knows. */
const struct switch_stack *switches_waits(const struct switches *s, uint32_t id,
					  uint64_t *ret_object, uint32_t *ret_pid);
/*
 * Records of a CPU were lost between the last one that was given and this time: what its threads
 * did since is not known until their next switch. SWITCHES_ANY_CPU: nobody knows which one lost
 * them.
 */
#define SWITCHES_ANY_CPU UINT32_MAX
void switches_lost(struct switches *s, uint32_t cpu, uint64_t time_ns);
/*
 * No switches were recorded from begin_ns to end_ns. What threads did then is not known; after
 * it each thread is assumed to do what it did before, until its next switch says otherwise.
 */
void switches_gap(struct switches *s, uint64_t begin_ns, uint64_t end_ns);
/* The thread, or the program in it, is gone: tells its time, forgets it. It ran until time_ns, if
 * it was running; 0: nobody knows. */
void switches_end(struct switches *s, uint32_t id, uint64_t time_ns);
/* Reports everything up to this time. A block that lasts is reported so far, and goes on. */
void switches_close(struct switches *s, uint64_t time_ns);
/* The same, but what follows is not known until each thread's next switch, and not counted. */
void switches_pause(struct switches *s, uint64_t time_ns);

/* Since the last switches_clear_totals(). */
const struct switch_totals *switches_totals(const struct switches *s);
void switches_clear_totals(struct switches *s);
