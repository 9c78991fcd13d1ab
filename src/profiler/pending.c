/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rings: of samples, and of the frames of these, which are as many as a stack has. Frames come
 * for the most part in the order of their samples. One whose frames have come out of turn keeps its
 * room until those before it are gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/pending.h"

struct waiting {
	struct frame_key key;
	uint32_t type, sample; /* whose stack is to be filled in */
	uint64_t at, bytes;    /* in frames; never 0 bytes */
	uint32_t n, n_kernel, n_native;
	bool done;
};

struct pending {
	struct joiner *j;
	struct pending_limits limits;
	struct waiting *samples; /* a ring */
	uint32_t first, n, n_waiting;
	uint8_t *frames; /* a ring; of each sample its stack pointers and then its rows */
	bool holes;	 /* samples in the profile that will have no stack */
};

int pending_new(struct pending **ret, struct joiner *j, const struct pending_limits *limits)
{
	struct pending *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->j = j;
	w->limits = *limits;
	w->limits.frame_bytes &= ~UINT64_C(7);
	w->samples = calloc(limits->samples + 1, sizeof(*w->samples));
	w->frames = malloc(w->limits.frame_bytes + 8);
	if (!w->samples || !w->frames) {
		pending_free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

struct pending *pending_free(struct pending *w)
{
	if (w) {
		free(w->samples);
		free(w->frames);
		free(w);
	}
	return NULL;
}

uint32_t pending_count(const struct pending *w)
{
	return w->n_waiting;
}

static struct waiting *sample_at(struct pending *w, uint32_t i)
{
	return &w->samples[(w->first + i) % w->limits.samples];
}

/* ---- Out ---- */

static struct walked_stack stack_of(const struct pending *w, const struct waiting *s)
{
	const uint8_t *bytes = w->frames + s->at;

	return (struct walked_stack){
		.sp = (const uint64_t *)(const void *)bytes,
		.rows = (const uint32_t *)(const void *)(bytes + s->n_native * sizeof(uint64_t)),
		.n = s->n,
		.n_kernel = s->n_kernel,
		.n_native = s->n_native,
	};
}

static void settle(struct pending *w, struct waiting *s, const struct walked_stack *stack,
		   const struct runtime_frames *frames, enum profile_marker marker)
{
	struct profile_type *type = &w->j->p->types[s->type];
	uint32_t row = joiner_stack(w->j, stack, frames, marker, s->type);

	type->samples.items[s->sample].stack = row;
	type->counters[PROFILE_STACKS_RUNTIME_LATE] += marker == PROFILE_MARKER_RUNTIME_LATE;
	w->holes |= row == PROFILE_NONE;
	s->done = true;
}

/* Room of what is done, from the oldest on. */
static void trim(struct pending *w)
{
	while (w->n && sample_at(w, 0)->done) {
		w->first = (w->first + 1) % w->limits.samples;
		w->n--;
	}
}

static void give_up_oldest(struct pending *w)
{
	const struct runtime_frames none = {.n = 0};
	struct waiting *s = sample_at(w, 0);
	const struct walked_stack stack = stack_of(w, s);

	settle(w, s, &stack, &none, PROFILE_MARKER_RUNTIME_LATE);
	w->n_waiting--;
	trim(w);
}

bool pending_come(struct pending *w, const struct frame_key *key,
		  const struct runtime_frames *frames)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct waiting *s = sample_at(w, i);
		struct walked_stack stack;

		if (s->done || s->key.time_ns != key->time_ns || s->key.tid != key->tid ||
		    s->key.cpu != key->cpu)
			continue;
		stack = stack_of(w, s);
		settle(w, s, &stack, frames, PROFILE_N_MARKERS);
		w->n_waiting--;
		trim(w);
		return true;
	}
	return false;
}

void pending_expire(struct pending *w, uint64_t time_ns)
{
	while (w->n && time_ns > sample_at(w, 0)->key.time_ns &&
	       time_ns - sample_at(w, 0)->key.time_ns > w->limits.wait_ns)
		give_up_oldest(w);
}

static void drop_holes(struct profile *p)
{
	for (uint32_t t = 0; t < p->n_types; t++) {
		struct profile_type *type = &p->types[t];
		uint32_t n = 0;

		for (uint32_t i = 0; i < type->samples.n; i++) {
			if (type->samples.items[i].stack != PROFILE_NONE)
				type->samples.items[n++] = type->samples.items[i];
		}
		type->counters[PROFILE_SAMPLES_DROPPED] += type->samples.n - n;
		type->samples.n = n;
	}
}

void pending_finish(struct pending *w)
{
	while (w->n)
		give_up_oldest(w);
	if (w->holes)
		drop_holes(w->j->p);
	w->holes = false;
}

/* ---- In ---- */

/* Where so many bytes are free behind the youngest; false: nowhere. */
static bool find_room(struct pending *w, uint64_t bytes, uint64_t *ret)
{
	const struct waiting *last = w->n ? sample_at(w, w->n - 1) : NULL;
	uint64_t head = w->n ? sample_at(w, 0)->at : 0, tail = last ? last->at + last->bytes : 0;
	bool wrapped = w->n && tail <= head;

	if (w->n == w->limits.samples)
		return false;
	*ret = tail;
	if ((wrapped ? head : w->limits.frame_bytes) - tail >= bytes)
		return true;
	*ret = 0;
	return !wrapped && head >= bytes;
}

static uint64_t stack_bytes(const struct walked_stack *stack)
{
	uint64_t bytes = stack->n_native * sizeof(*stack->sp) + stack->n * sizeof(*stack->rows);

	return bytes ? (bytes + 7) & ~UINT64_C(7) : 8;
}

static void copy(struct pending *w, const struct waiting *s, const struct walked_stack *stack)
{
	uint8_t *bytes = w->frames + s->at;
	size_t n_sp = stack->n_native * sizeof(*stack->sp);

	if (n_sp)
		memcpy(bytes, stack->sp, n_sp);
	if (stack->n)
		memcpy(bytes + n_sp, stack->rows, stack->n * sizeof(*stack->rows));
}

void pending_add(struct pending *w, const struct frame_key *key, uint32_t type,
		 const struct profile_sample *sample, const struct walked_stack *stack)
{
	const struct runtime_frames none = {.n = 0};
	struct profile *p = w->j->p;
	struct profile_sample unfinished = *sample;
	struct waiting s = {
		.key = *key,
		.type = type,
		.sample = p->types[type].samples.n,
		.bytes = stack_bytes(stack),
		.n = stack->n,
		.n_kernel = stack->n_kernel,
		.n_native = stack->n_native,
	};

	unfinished.stack = PROFILE_NONE;
	if (!profile_add_sample_of(p, type, &unfinished))
		return;
	if (w->limits.samples == 0 || s.bytes > w->limits.frame_bytes) {
		settle(w, &s, stack, &none, PROFILE_MARKER_RUNTIME_LATE);
		return;
	}
	while (!find_room(w, s.bytes, &s.at))
		give_up_oldest(w);
	copy(w, &s, stack);
	*sample_at(w, w->n++) = s;
	w->n_waiting++;
}
