/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Off-CPU time of the attribution: records of context switches into the table of waits
 * (switches.h), and what that tells into samples of the window, each with a stack and nanoseconds.
 */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct ledger;
struct off_cpu;
struct record;

/* For attributions whose events are also those of switches; else *ret is NULL. 0 or -ENOMEM. */
int off_cpu_new(struct off_cpu **ret, struct attribution *a);
/* Types of a window that begins, behind those of events. */
void off_cpu_put_types(struct off_cpu *o);
/* Where it is written when the events stood still; borrowed. */
void off_cpu_watch_gaps(struct off_cpu *o, const struct ledger *l);
struct off_cpu *off_cpu_free(struct off_cpu *o);

/* A record of a switch, with or without a stack, and what ends a thread or puts its time in doubt;
 * the others are ignored. */
void off_cpu_record(struct off_cpu *o, const struct record *r);
/* Every switch up to that time has been told of: looks after threads that are blocked for long and
 * of whose stack nothing is known. */
void off_cpu_read_late(struct off_cpu *o, uint64_t time_ns);
/* The switches of some CPU were lost that no record has told. */
void off_cpu_lost(struct off_cpu *o);
/* The window ends: everything up to that time (perf clock) becomes samples. pause: switches are not
 * told any more from here on. */
void off_cpu_close(struct off_cpu *o, uint64_t time_ns, bool pause);
