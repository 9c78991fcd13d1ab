/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When a CPU is sampled, where threads share it.
 *
 * A reader runs for each sample, and when it sleeps again the kernel chooses anew which thread
 * runs. With a fixed period the next sample finds what runs that long after such a choice, again
 * and again, and not what runs on the average. A sample finds the average if its time has nothing
 * to do with that of the others. So each of 64 instants is anywhere in 64 periods, whatever the
 * others are: it finds the average of a CPU on which the 63 others are sampled. The number of
 * samples stays right to some, as it would not with a Poisson process, which has any number.
 *
 * A CPU that idles, or that one thread has for itself, keeps the fixed period: nothing is chosen
 * there, and the number is as exact as can be. 64 periods, a block, are the one or the other as a
 * whole, by the samples of the block before: if single samples decided, those that do would count
 * too often.
 */
#include <stdbool.h>
#include <stdint.h>

#define INSTANTS_BLOCK 64 /* periods, and instants */

struct instants {
	uint64_t period_ns; /* the mean */
	/* What the kernel repeats until the next call (0: not known), and when the first sample of
	 * it comes. */
	uint64_t set_ns, due_ns;
	uint64_t own_ns;	     /* the timer's own time; 0: it has none */
	uint64_t random;	     /* not 0 */
	uint64_t begin_ns;	     /* of the block; 0: there was no sample yet */
	bool is_random;		     /* the block is */
	uint32_t next;		     /* of at: the first that was not set yet */
	uint64_t at[INSTANTS_BLOCK]; /* of a random block, in order */
	/* Samples in the block, and those of another thread than the one before. */
	uint32_t last_tid, n, n_changes;
	uint32_t n_alone;   /* blocks in which one thread was seen */
	uint32_t n_surplus; /* samples that came too early, less one for each block */
	/* So many blocks are plain, whatever is sampled; so many the next time. */
	uint32_t n_plain, plain_blocks;
};

/* seed: any number. own_time: the timer stands still while a control group does not run. Then its
 * time goes by its periods, not by what the caller says. */
void instants_init(struct instants *s, uint64_t period_ns, bool own_time, uint64_t seed);
/* The event is a new one: nobody has set its period. */
void instants_forget(struct instants *s);
/* Before something that may take long: the period to set, from now on; 0: the one that is set will
 * do. It need not be called before each instants_next(). */
uint64_t instants_hold(struct instants *s, uint64_t now_ns);

/* The newest of n that came since the last call (1: only it). */
struct instants_sample {
	uint64_t time_ns, seen_ns; /* when it was taken, and when the reader began to run */
	uint32_t tid, n;
};
/*
 * The reader is done with the sample. Returns the period to set now; 0: the one that is set is
 * right. Instants since seen_ns are left out: no other thread runs while the reader does.
 */
uint64_t instants_next(struct instants *s, const struct instants_sample *sample, uint64_t now_ns);
