/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This code visits every frame of every stack of a window, inlined functions as frames of their
 * own. So it cleans and interns a text once for each function and process, and marks the rows that
 * the current stack has counted already.
 */
#include "src/symbolizer/live.h"

#include <errno.h>
#include <string.h>

#include "src/render/aggregate.h"
#include "src/render/frame.h"
#include "src/render/first-frame.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

#define MAX_PATH 8192 /* functions of a stack; what is further out is the process's */

struct live {
	struct top_table *t;
	const struct profile *p;
	strid *functions; /* names by row of p->functions; 0: not cleaned yet */
	uint32_t process; /* of the row below */
	struct top_row row;
	ARRAY(uint32_t) path; /* rows of a stack's functions, innermost first */
};

static strid put(struct live *l, const char *text)
{
	char clean[256];
	size_t n = text_shorten(clean, sizeof(clean), text, NULL);

	return strtab_put_n(&l->t->strings, clean, n);
}

static void use_process(struct live *l, uint32_t process)
{
	char text[256];

	if (l->process == process)
		return;
	l->process = process;
	l->row = (struct top_row){.pid = l->p->processes.items[process].pid};
	(void)frame_process_name(l->p, process, text, sizeof(text));
	l->row.comm = put(l, text);
	(void)frame_process_owner(l->p, process, text, sizeof(text));
	l->row.owner = put(l, text);
}

static strid function_name(struct live *l, uint32_t frame, uint32_t function)
{
	char name[FRAME_MAX_NAME];

	if (function == PROFILE_NONE) {
		(void)frame_fallback_name(l->p, frame, name, sizeof(name));
		return put(l, name);
	}
	if (!l->functions[function]) {
		(void)frame_function_name(l->p, function, name, sizeof(name));
		l->functions[function] = put(l, name);
	}
	return l->functions[function];
}

static enum top_code code_of(const struct live *l, uint32_t frame)
{
	switch (l->p->modules.items[l->p->frames.items[frame].module].kind) {
	case PROFILE_MODULE_FILE:
		return TOP_CODE_FILE;
	case PROFILE_MODULE_RUNTIME:
		return TOP_CODE_RUNTIME;
	case PROFILE_MODULE_JIT:
		return TOP_CODE_COMPILED;
	default:
		return TOP_CODE_OTHER;
	}
}

/* One function of a stack that weighs n, the stack's mark-th. */
static void count(struct live *l, uint32_t frame, uint32_t function, uint32_t mark, uint64_t n,
		  bool self)
{
	uint64_t refused = l->t->strings.n_refused;
	struct top_row *row;
	uint32_t *step;

	l->row.code = code_of(l, frame);
	l->row.function = function_name(l, frame, function);
	l->row.module =
		put(l, frame_function_module(l->p, l->p->frames.items[frame].module, function));
	if (l->t->strings.n_refused != refused) {
		l->t->n_refused++;
		return;
	}
	row = top_table_row(l->t, &l->row);
	if (!row)
		return;
	row->self += self ? n : 0;
	row->total += row->mark == mark ? 0 : n;
	row->mark = mark;
	step = array_push(&l->path);
	if (step)
		*step = (uint32_t)(row - l->t->rows.items);
}

/* The path of a stack that weighs n, below its process. */
static void count_path(struct live *l, uint64_t n)
{
	struct top_row key = l->row, *process;
	uint32_t node;

	key.function = key.module = STRID_EMPTY;
	key.code = TOP_CODE_OTHER;
	process = top_table_row(l->t, &key);
	if (!process)
		return;
	node = top_table_node(l->t, TOP_NO_NODE, (uint32_t)(process - l->t->rows.items));
	for (uint32_t i = l->path.n; node != TOP_NO_NODE; i--) {
		l->t->nodes.items[node].total += n;
		if (i == 0) {
			l->t->nodes.items[node].self += n;
			break;
		}
		node = top_table_node(l->t, node, l->path.items[i - 1]);
	}
}

static enum top_unit unit_of(const struct profile *p)
{
	const char *unit = profile_period_unit(p);

	return !p->types[0].weighted		  ? TOP_UNIT_SAMPLES
	       : strcmp(unit, "nanoseconds") == 0 ? TOP_UNIT_NANOSECONDS
	       : strcmp(unit, "bytes") == 0	  ? TOP_UNIT_BYTES
	       : profile_is_objects(p, 0)	  ? TOP_UNIT_OBJECTS
						  : TOP_UNIT_SAMPLES;
}

/* The weight of a stack: its samples, or their values if these have a unit. */
static uint64_t weight_of(const struct live *l, const struct aggregate_row *a)
{
	bool counted = l->p->types[0].weighted && l->t->unit == TOP_UNIT_SAMPLES;
	int64_t weight = counted ? a->n : a->value;

	return weight > 0 ? (uint64_t)weight : 0;
}

static void count_stack(struct live *l, const struct aggregate_row *a, uint32_t mark)
{
	const struct profile *p = l->p;
	uint64_t weight = weight_of(l, a), room = TOP_MAX_WHOLE - l->t->counts.whole;
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, a->stack, &n);
	bool self = true;

	/* Only of a program that says it allocated terabytes. */
	if (weight > room) {
		weight = room;
		l->t->n_refused++;
	}
	use_process(l, p->threads.items[a->thread].process);
	array_clear(&l->path);
	l->t->counts.whole += weight;
	for (uint32_t i = first_frame(p, a->stack); i < n; i++) {
		const struct profile_frame *f = &p->frames.items[frames[i]];

		/* What the outermost marker says is in the counts. */
		if (!self && frame_kind(p, frames[i]) == FRAME_MARKER)
			continue;
		for (uint32_t j = 0; j < f->n_lines; j++, self = false)
			count(l, frames[i], p->lines.items[f->first_line + j].function, mark,
			      weight, self);
		if (f->n_lines == 0)
			count(l, frames[i], PROFILE_NONE, mark, weight, self);
		self = false;
	}
	count_path(l, weight);
}

/* A sample of memory stands for all sampled blocks of its place. */
static uint64_t n_samples(const struct profile *p, const struct top_table *t)
{
	uint64_t n = 0;

	if (!t->in_use && t->unit != TOP_UNIT_OBJECTS)
		return p->types[0].samples.n;
	for (uint32_t i = 0; i < p->types[0].samples.n; i++)
		n += p->types[0].samples.items[i].n;
	return n;
}

int live_table(struct top_table *t, const struct profile *p)
{
	_cleanup_free_ strid *functions = calloc((size_t)p->functions.n + 1, sizeof(*functions));
	struct live l = {.t = t,
			 .p = p,
			 .functions = functions,
			 .process = PROFILE_NONE,
			 .path = ARRAY_INIT(MAX_PATH)};
	struct aggregate a = {.total = 0};
	int r = functions ? aggregate_build(&a, p, NULL) : -ENOMEM;

	top_table_clear(t);
	t->unit = unit_of(p);
	for (uint32_t i = 0; i < a.rows.n && r == 0; i++)
		count_stack(&l, &a.rows.items[i], i + 1);
	aggregate_deinit(&a);
	array_deinit(&l.path);
	t->in_use = profile_is_in_use(p, 0);
	t->variance = p->types[0].variance;
	t->counts.n_samples = n_samples(p, t);
	t->counts.idle_ns = profile_counter(p, PROFILE_IDLE_US) * NSEC_PER_USEC;
	t->counts.n_lost = profile_counter(p, PROFILE_SAMPLES_LOST) +
			   profile_counter(p, PROFILE_SAMPLES_DROPPED) +
			   profile_counter(p, PROFILE_SAMPLES_DIED);
	t->counts.n_user_stacks = profile_counter(p, PROFILE_USER_STACKS);
	t->counts.n_incomplete = profile_stacks_incomplete(p);
	if (t->counts.n_incomplete > t->counts.n_user_stacks)
		t->counts.n_incomplete = t->counts.n_user_stacks;
	t->period_ns = p->types[0].period_ns;
	t->period_events = p->types[0].period_events;
	t->start_ns = p->start_unix_ns;
	t->end_ns = p->end_unix_ns;
	return r;
}
