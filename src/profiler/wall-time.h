/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Wall time: all time of each thread, as one type of the window. Off-CPU time has stacks. The
 * switches give the exact time on a CPU, which goes in equal parts to the thread's samples of CPU
 * time. The time that a thread waited for a CPU has no stack.
 */
#include <stdint.h>

struct attribution;
struct wall_time;

/* Time of a thread since its last struct. */
struct thread_time {
	uint32_t pid, tid, cpu;
	uint64_t running_ns, waiting_ns; /* waiting: for a CPU */
	uint64_t time_ns;
};

/* a: borrowed. 0 or -ENOMEM. */
int wall_time_new(struct wall_time **ret, struct attribution *a);
struct wall_time *wall_time_free(struct wall_time *w);

/* Adds the type to a window that begins, after those of events. */
void wall_time_put_type(struct wall_time *w);
void wall_time_add(struct wall_time *w, const struct thread_time *t);
/* Call it before the window is read: makes the samples of wall time, from the added times, from the
 * samples of the first type, if that is CPU time, and from those of type off_cpu. */
void wall_time_fill(struct wall_time *w, uint32_t off_cpu);
