/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/wall-time.h"
#include "util/bisect.h"

#define MAX_THREADS 262144

struct wall_time {
	struct attribution *a;
	ARRAY(struct thread_time) threads;
	uint32_t type;
};

/* A sample of CPU time, to be found by its thread. */
struct cpu_sample {
	uint32_t pid, tid, sample;
};

int wall_time_new(struct wall_time **ret, struct attribution *a)
{
	struct wall_time *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->a = a;
	w->threads.max = MAX_THREADS;
	w->type = PROFILE_NONE;
	*ret = w;
	return 0;
}

struct wall_time *wall_time_free(struct wall_time *w)
{
	if (w) {
		array_deinit(&w->threads);
		free(w);
	}
	return NULL;
}

void wall_time_put_type(struct wall_time *w)
{
	const struct profile_type t = {
		.period_events = 1,
		.event = strtab_put(&w->a->profile.strings, PROFILE_WALL),
		.unit = strtab_put(&w->a->profile.strings, "nanoseconds"),
		.weighted = true,
	};

	w->type = profile_add_type(&w->a->profile, &t);
}

void wall_time_add(struct wall_time *w, const struct thread_time *t)
{
	struct thread_time *place = t->running_ns || t->waiting_ns ? array_push(&w->threads) : NULL;

	if (place)
		*place = *t;
	else if ((t->running_ns || t->waiting_ns) && w->type != PROFILE_NONE)
		w->a->profile.types[w->type].counters[PROFILE_SAMPLES_DROPPED]++;
}

static void put(struct wall_time *w, const struct profile_sample *s)
{
	struct profile *p = &w->a->profile;

	if (s->thread == PROFILE_NONE || s->stack == PROFILE_NONE)
		p->types[w->type].counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(p, w->type, s);
}

/* A stack with a marker outside of it; PROFILE_NONE: the marker alone. */
static uint32_t marked_stack(struct wall_time *w, uint32_t stack, enum profile_marker marker)
{
	struct attribution *a = w->a;
	uint32_t n = 0, n_kernel = 0;

	if (stack != PROFILE_NONE) {
		const uint32_t *frames = profile_stack_frames(&a->profile, stack, &n);

		n_kernel = a->profile.stacks.items[stack].n_kernel;
		memcpy(a->frames, frames, n * sizeof(*frames));
	}
	a->frames[n] = attribution_marker(a, marker);
	return a->frames[n] == PROFILE_NONE
		       ? PROFILE_NONE
		       : profile_add_stack(&a->profile, a->frames, n + 1, n_kernel);
}

/* ---- On a CPU ---- */

static int compare_samples(const void *a, const void *b)
{
	const struct cpu_sample *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static bool is_of(const struct cpu_sample *s, const struct thread_time *t)
{
	return s->tid == t->tid && s->pid == t->pid;
}

/* The first of a thread; n: it has none. */
static uint32_t find_first(const struct cpu_sample *samples, uint32_t n,
			   const struct thread_time *t)
{
	uint32_t at = bisect(n, i,
			     samples[i].tid < t->tid ||
				     (samples[i].tid == t->tid && samples[i].pid < t->pid));

	return at < n && is_of(&samples[at], t) ? at : n;
}

/* Its time in parts that differ by a nanosecond at most. */
static void put_running(struct wall_time *w, const struct thread_time *t, uint32_t thread,
			const struct cpu_sample *samples, uint32_t n)
{
	uint32_t first = find_first(samples, n, t), end = first, k;
	struct profile_sample s = {
		.time_unix_ns = t->time_ns, .thread = thread, .cpu = t->cpu, .n = 1};
	const struct profile_sample *of;

	while (end < n && is_of(&samples[end], t))
		end++;
	k = end - first;
	if (k == 0) {
		s.value = (int64_t)t->running_ns;
		s.stack = marked_stack(w, PROFILE_NONE, PROFILE_MARKER_ON_CPU);
		put(w, &s);
	}
	for (uint32_t i = 0; i < k; i++) {
		of = &w->a->profile.types[0].samples.items[samples[first + i].sample];
		s.value = (int64_t)(t->running_ns / k + (i < t->running_ns % k));
		s.time_unix_ns = of->time_unix_ns;
		s.cpu = of->cpu;
		s.thread = of->thread; /* with its span */
		s.stack = marked_stack(w, of->stack, PROFILE_MARKER_ON_CPU);
		put(w, &s);
	}
}

static struct cpu_sample *sort_samples(const struct wall_time *w, uint32_t *ret_n)
{
	const struct profile *p = &w->a->profile;
	const struct profile_type *t = &p->types[0];
	uint32_t n = t->period_ns ? t->samples.n : 0;
	struct cpu_sample *samples = malloc(((size_t)n + 1) * sizeof(*samples));

	for (uint32_t i = 0; samples && i < n; i++) {
		const struct profile_thread *of = &p->threads.items[t->samples.items[i].thread];

		samples[i] = (struct cpu_sample){p->processes.items[of->process].pid, of->tid, i};
	}
	if (samples)
		qsort(samples, n, sizeof(*samples), compare_samples);
	*ret_n = n;
	return samples;
}

static void put_thread(struct wall_time *w, const struct thread_time *t,
		       const struct cpu_sample *samples, uint32_t n)
{
	struct attribution *a = w->a;
	const struct record r = {.pid = t->pid, .tid = t->tid, .time_ns = t->time_ns};
	struct profile_sample s = {
		.time_unix_ns = t->time_ns, .value = (int64_t)t->waiting_ns, .cpu = t->cpu, .n = 1};

	a->process = host_process_get(a->host, t->pid, t->tid, t->time_ns);
	a->time_ns = t->time_ns;
	s.thread = attribution_thread_row(a, &r, a->process);
	if (t->running_ns)
		put_running(w, t, s.thread, samples, n);
	if (t->waiting_ns) {
		s.stack = marked_stack(w, PROFILE_NONE, PROFILE_MARKER_RUNNABLE);
		put(w, &s);
	}
}

void wall_time_fill(struct wall_time *w, uint32_t off_cpu)
{
	const struct profile *p = &w->a->profile;
	struct cpu_sample *samples;
	uint32_t n;

	if (w->type == PROFILE_NONE)
		return;
	samples = sort_samples(w, &n);
	for (uint32_t i = 0; samples && i < w->threads.n; i++)
		put_thread(w, &w->threads.items[i], samples, n);
	free(samples);
	array_clear(&w->threads);
	for (uint32_t i = 0; i < p->types[off_cpu].samples.n; i++)
		put(w, &p->types[off_cpu].samples.items[i]);
}
