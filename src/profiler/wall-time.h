/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Wall time: what each thread did with all of its time, as one type of the window. Off-CPU time has
 * its stacks already. The time on a CPU is exact by the switches, and goes in equal parts to the
 * samples of CPU time of the thread; the time that it waited for a CPU has no stack.
 */
#include <stdint.h>

struct attribution;
struct wall_time;

/* Of a thread, since the last one of it. */
struct thread_time {
	uint32_t pid, tid, cpu;
	uint64_t running_ns, waiting_ns; /* waiting: for a CPU */
	uint64_t time_ns;
};

/* a: borrowed. 0 or -ENOMEM. */
int wall_time_new(struct wall_time **ret, struct attribution *a);
struct wall_time *wall_time_free(struct wall_time *w);

/* Adds the type to a window that begins, behind those of events. */
void wall_time_put_type(struct wall_time *w);
void wall_time_add(struct wall_time *w, const struct thread_time *t);
/* Before the window is read: makes samples of the times that were added, of the samples of the
 * first type, if that is CPU time, and of those of off-CPU time, that type. */
void wall_time_fill(struct wall_time *w, uint32_t off_cpu);
