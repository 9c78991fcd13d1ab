/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "src/symbolizer/idle.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* A sample, to be sorted by thread and stack. A thread has a row for each span that it was in. */
struct idle_piece {
	uint32_t process, tid, stack, sample;
};

static int compare_pieces(const void *a, const void *b)
{
	const struct idle_piece *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static bool is_same_place(const struct idle_piece *a, const struct idle_piece *b)
{
	return a->process == b->process && a->tid == b->tid && a->stack == b->stack;
}

/* How much of the window the switches of threads are known: they may have been followed in turns.
 */
static double known_ns(const struct profile *p)
{
	double unknown = (double)profile_counter(p, PROFILE_UNKNOWN_US);
	double known = (double)profile_counter(p, PROFILE_RUNNING_US) +
		       (double)profile_counter(p, PROFILE_WAITING_US) +
		       (double)profile_counter(p, PROFILE_BLOCKED_US) +
		       (double)profile_counter(p, PROFILE_STOPPED_US);

	return known > 0 ? (double)profile_covered_ns(p) * known / (known + unknown) : 0;
}

/* ---- Places ---- */

static bool is_called(const struct profile *p, uint32_t frame, const char *part)
{
	const struct profile_frame *f = &p->frames.items[frame];

	for (uint32_t i = 0; i < f->n_lines; i++) {
		uint32_t function = p->lines.items[f->first_line + i].function;

		if (strstr(profile_text(p, p->functions.items[function].name), part))
			return true;
	}
	return false;
}

static bool any_is_called(const struct profile *p, const uint32_t *frames, uint32_t n,
			  const char *part)
{
	for (uint32_t i = 0; i < n; i++) {
		if (is_called(p, frames[i], part))
			return true;
	}
	return false;
}

/* Waiting for an answer, for the end of a thread, or to write is not waiting for work. */
static bool waits_for_work(const struct profile *p, uint32_t stack)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	if (n == 0 || !profile_is_wait(p, frames[n - 1]))
		return false;
	switch (p->frames.items[frames[n - 1]].address) {
	case PROFILE_MARKER_WAIT_POLL:
	case PROFILE_MARKER_WAIT_SLEEP:
	case PROFILE_MARKER_WAIT_SIGNAL:
		return true;
	case PROFILE_MARKER_WAIT_CONDITION:
		return !any_is_called(p, frames, n, "join");
	case PROFILE_MARKER_WAIT_PIPE:
		return !any_is_called(p, frames, n, "write");
	case PROFILE_MARKER_WAIT_NETWORK:
		return any_is_called(p, frames, n, "accept");
	default:
		return false;
	}
}

/* The stack with [idle] outside of it, or [idle] alone; the stack itself if there is no room. */
static uint32_t idle_stack(struct profile *p, uint32_t stack, bool whole)
{
	uint32_t n, n_kernel = whole ? p->stacks.items[stack].n_kernel : 0, at;
	const uint32_t *rows = profile_stack_frames(p, stack, &n);
	_cleanup_free_ uint32_t *frames = malloc(((size_t)n + 1) * sizeof(*frames));

	if (n == 0 || !frames)
		return stack;
	frames[0] = profile_add_frame(p, p->frames.items[rows[n - 1]].module, PROFILE_MARKER_IDLE);
	if (frames[0] == PROFILE_NONE)
		return stack;
	if (whole) {
		frames[n] = frames[0];
		memcpy(frames, rows, n * sizeof(*frames));
	}
	at = profile_add_stack(p, frames, whole ? n + 1 : 1, n_kernel);
	return at == PROFILE_NONE ? stack : at;
}

/* ---- Samples ---- */

/* Their stack becomes PROFILE_NONE: they are to be removed. */
static void take_out(struct profile_type *t, const struct idle_piece *pieces, uint32_t n,
		     int64_t *sum)
{
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample *s = &t->samples.items[pieces[i].sample];

		*sum = profile_sum(*sum, s->value);
		s->stack = PROFILE_NONE;
	}
}

static void remove_samples(struct profile_type *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->samples.n; i++) {
		if (t->samples.items[i].stack != PROFILE_NONE)
			t->samples.items[n++] = t->samples.items[i];
	}
	t->samples.n = n;
}

/* Of one thread in one place. */
static bool is_idle(const struct profile *p, const struct profile_type *t,
		    const struct idle_piece *pieces, uint32_t n, double window_ns)
{
	double ns = 0, blocks = 0;

	for (uint32_t i = 0; i < n; i++) {
		ns += (double)t->samples.items[pieces[i].sample].value;
		blocks += t->samples.items[pieces[i].sample].n;
	}
	return ns > 0.9 * window_ns && blocks * NSEC_PER_SEC < window_ns &&
	       waits_for_work(p, pieces[0].stack);
}

static void fold_place(struct profile *p, uint32_t type, const struct idle_piece *pieces,
		       uint32_t n, bool show, int64_t *sum)
{
	uint32_t stack;

	if (!show && profile_is_off_cpu(p, type)) {
		take_out(&p->types[type], pieces, n, sum);
		return;
	}
	stack = idle_stack(p, pieces[0].stack, show);
	for (uint32_t i = 0; i < n; i++)
		p->types[type].samples.items[pieces[i].sample].stack = stack;
}

static void fold_type(struct profile *p, uint32_t type, double window_ns, bool show)
{
	struct profile_type *t = &p->types[type];
	_cleanup_free_ struct idle_piece *pieces =
		calloc((size_t)t->samples.n + 1, sizeof(*pieces));
	int64_t sum = 0;
	uint32_t n;

	for (uint32_t i = 0; pieces && i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];
		const struct profile_thread *of = &p->threads.items[s->thread];

		pieces[i] = (struct idle_piece){of->process, of->tid, s->stack, i};
	}
	if (!pieces)
		return;
	qsort(pieces, t->samples.n, sizeof(*pieces), compare_pieces);
	for (uint32_t i = 0; i < t->samples.n; i += n) {
		for (n = 1; i + n < t->samples.n && is_same_place(&pieces[i + n], &pieces[i]); n++)
			;
		if (is_idle(p, t, &pieces[i], n, window_ns))
			fold_place(p, type, &pieces[i], n, show, &sum);
	}
	remove_samples(t);
	t->counters[PROFILE_IDLE_US] += (uint64_t)sum / NSEC_PER_USEC;
}

void idle_fold(struct profile *p, bool show)
{
	double window_ns = known_ns(p);

	for (uint32_t i = 0; i < p->n_types && window_ns >= NSEC_PER_SEC; i++) {
		if (profile_is_off_cpu(p, i) || profile_is_wall(p, i))
			fold_type(p, i, window_ns, show);
	}
}
