/* SPDX-License-Identifier: Apache-2.0 */
/* Waits and wake-ups as samples of the window, and the totals of switches as its counters. */
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/known-stacks.h"
#include "src/profiler/lock-places.h"
#include "src/profiler/off-cpu-internal.h"
#include "src/profiler/wall-time.h"
#include "util/clock.h"

static void tell_sample(struct off_cpu *o, const struct switch_wait *w, uint32_t thread,
			uint32_t stack)
{
	struct profile *p = &o->a->profile;
	const struct profile_sample s = {
		.time_unix_ns = w->time_ns > o->begin_ns ? w->time_ns : o->begin_ns,
		.value = w->ns <= INT64_MAX ? (int64_t)w->ns : INT64_MAX,
		.thread = thread,
		.stack = stack,
		.cpu = w->cpu,
		.n = w->n <= UINT32_MAX ? (uint32_t)w->n : 0,
	};

	if (thread == PROFILE_NONE || stack == PROFILE_NONE)
		p->types[o->blocks].counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(p, o->blocks, &s);
}

void off_cpu_tell_wait(void *ctx, const struct switch_wait *w)
{
	struct off_cpu *o = ctx;
	struct attribution *a = o->a;
	const struct record r = {.pid = w->pid, .tid = w->tid, .time_ns = w->time_ns};

	uint32_t object = PROFILE_NONE, thread;

	a->counters = a->profile.types[o->blocks].counters;
	a->process = host_process_get(a->host, w->pid, w->tid, w->time_ns);
	a->time_ns = w->time_ns;
	if (o->locks && a->process &&
	    (w->stack ? off_cpu_is_futex(w->stack->reason)
		      : lock_places_knows(o->locks, a->process, w->object, w->ip)))
		object = lock_places_frame(o->locks, a->process, w->object);
	a->labels = off_cpu_take_span(o, w);
	thread = attribution_thread_row(a, &r, a->process);
	a->labels = STRID_EMPTY;
	tell_sample(o, w, thread, attribution_waiting_stack(a, w->stack, object));
}

void off_cpu_tell_other(void *ctx, const struct switch_other *other)
{
	struct off_cpu *o = ctx;
	const struct thread_time t = {.pid = other->pid,
				      .tid = other->tid,
				      .cpu = other->cpu,
				      .running_ns = other->running_ns,
				      .waiting_ns = other->waiting_ns,
				      .time_ns = other->time_ns > o->begin_ns ? other->time_ns
									      : o->begin_ns};

	wall_time_add(o->wall, &t);
}

void off_cpu_put_types(struct off_cpu *o)
{
	if (o->wall)
		wall_time_put_type(o->wall);
}

/* The first n frames of the attribution. */
void off_cpu_tell_wakeup(struct off_cpu *o, const struct record *r, uint32_t n)
{
	struct attribution *a = o->a;
	struct profile *p = &a->profile;
	struct profile_sample s = {.time_unix_ns = r->time_ns, .value = 1, .cpu = r->cpu, .n = 1};
	bool fits = true;

	for (uint32_t i = 0; i < n; i++)
		fits &= a->frames[i] != PROFILE_NONE;
	s.thread = attribution_thread_row(a, r, a->process);
	s.stack = fits ? profile_add_stack(p, a->frames, n, (uint32_t)r->sample.n_kernel)
		       : PROFILE_NONE;
	if (s.thread == PROFILE_NONE || s.stack == PROFILE_NONE)
		a->counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(p, o->wakeups, &s);
}

/* Where the places of blocks are known, a stack that found no room says no more than that others
 * were copied: the time of its block is that of its place. */
static void tell_uncopied(struct off_cpu *o)
{
	uint64_t *c = o->a->profile.types[o->blocks].counters;

	if (o->events[o->blocks].options.switch_fields.plain)
		return;
	c[PROFILE_BLOCKS_UNCOPIED] += c[PROFILE_SAMPLES_LOST];
	c[PROFILE_SAMPLES_LOST] = 0;
}

void off_cpu_put_totals(struct off_cpu *o)
{
	const struct switch_totals *t = switches_totals(o->switches);
	uint64_t *c = o->a->profile.types[o->blocks].counters;

	c[PROFILE_SWITCHES] += t->n_switches;
	c[PROFILE_SWITCHES_BROKEN] += t->n_broken;
	c[PROFILE_SWITCHES_REFUSED] += t->n_refused;
	c[PROFILE_RUNNING_US] += t->running_ns / NSEC_PER_USEC;
	c[PROFILE_WAITING_US] += t->waiting_ns / NSEC_PER_USEC;
	c[PROFILE_BLOCKED_US] += t->blocked_ns / NSEC_PER_USEC;
	c[PROFILE_STOPPED_US] += t->stopped_ns / NSEC_PER_USEC;
	c[PROFILE_UNKNOWN_US] += t->unknown_ns / NSEC_PER_USEC;
	c[PROFILE_BEFORE_US] += t->before_ns / NSEC_PER_USEC;
	c[PROFILE_NOT_SEEN_US] += t->not_seen_ns / NSEC_PER_USEC;
	c[PROFILE_SPANS_BLOCKED_LINKED_US] += o->span_ns[OFF_CPU_SPAN_LINKED] / NSEC_PER_USEC;
	c[PROFILE_SPANS_BLOCKED_OUTSIDE_US] += o->span_ns[OFF_CPU_SPAN_OUTSIDE] / NSEC_PER_USEC;
	c[PROFILE_SPANS_BLOCKED_UNPROVEN_US] += o->span_ns[OFF_CPU_SPAN_UNPROVEN] / NSEC_PER_USEC;
	tell_uncopied(o);
	memset(o->span_ns, 0, sizeof(o->span_ns));
	switches_clear_totals(o->switches);
}
