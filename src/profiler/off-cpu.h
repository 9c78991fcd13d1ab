/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Off-CPU time of the attribution: it passes records of context switches to the table of waits
 * (switches.h), and turns the waits into samples of the window, each with a stack and nanoseconds.
 */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct blocked_context;
struct message_stands;
struct ledger;
struct off_cpu;
struct record;

/* Only if the attribution has events of switches; else *ret is NULL. a: borrowed. 0 or -ENOMEM. */
int off_cpu_new(struct off_cpu **ret, struct attribution *a);
/* Adds its types to a window that begins, after those of events. */
void off_cpu_put_types(struct off_cpu *o);
/* The ledger that says when the events stood still; borrowed. */
void off_cpu_watch_gaps(struct off_cpu *o, const struct ledger *l);
struct off_cpu *off_cpu_free(struct off_cpu *o);

/* Takes a record of a switch, with or without a stack, and records that end a thread or put its
 * time in doubt; ignores others. */
void off_cpu_record(struct off_cpu *o, const struct record *r);
/* The host model has the new name of a thread: is its time wanted? Comes after off_cpu_record(). */
void off_cpu_renamed(struct off_cpu *o, const struct record *r);
/* All switches up to that time were taken: asks about some threads that were found standing, and
 * reads the stacks of those that have been blocked for long and whose stack is unknown. */
void off_cpu_read_late(struct off_cpu *o, uint64_t time_ns);
/* The span of a thread that has been blocked for long, as a reader answers. */
void off_cpu_span(struct off_cpu *o, const struct blocked_context *context);
/* Takes MESSAGE_STANDS: n threads whose last switch came before all records. n_left: how many more
 * there are, of which nobody will tell. */
void off_cpu_stands(struct off_cpu *o, const struct message_stands *threads, uint32_t n,
		    uint32_t n_left);
/* Switches of some CPU were lost, and no record says so. */
void off_cpu_lost(struct off_cpu *o);
/* As switches_enough_stacks(). */
uint32_t off_cpu_enough_stacks(struct off_cpu *o);
/* Would a quarter of the samples of blocks and wake-ups do (switches_places_known())? Not in a
 * capture, which is short, nor where each sample tells something of its block alone: who releases a
 * lock, the span that its thread is in, or, without tracefs, its place. */
bool off_cpu_places_known(struct off_cpu *o, uint64_t time_ns);
/* Records of the lives of threads were lost: whose end was told may be another thread by now. */
void off_cpu_lost_lives(struct off_cpu *o);
/* The last window ends: tells of the threads found standing that were not asked about. */
void off_cpu_end(struct off_cpu *o);
/* The window ends: all time up to time_ns (perf clock) becomes samples. pause: no switches follow
 * for now. */
void off_cpu_close(struct off_cpu *o, uint64_t time_ns, bool pause);
