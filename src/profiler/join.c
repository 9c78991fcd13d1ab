/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a runtime's frames between native ones, by their addresses.
 *
 * The stack pointer grows from frame to frame, but a stack may continue on another one (a signal
 * handler's, a coroutine's), at any address. So we divide the native frames into runs in which it
 * grows: a runtime's frame belongs to the run whose addresses are around its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/profiler/join.h"
#include "util/ensure.h"
#include "util/text.h"

#define MAX_NAME 4096

int joiner_init(struct joiner *j, struct profile *p, uint32_t max_rows)
{
	*j = (struct joiner){.p = p, .max = max_rows + FRAME_SOURCE_MAX_FRAMES + 2};
	j->rows = calloc(j->max, sizeof(*j->rows));
	j->items = calloc(j->max, sizeof(*j->items));
	if (j->rows && j->items)
		return 0;
	joiner_deinit(j);
	return -ENOMEM;
}

void joiner_deinit(struct joiner *j)
{
	free(j->rows);
	free(j->items);
	j->rows = NULL;
	j->items = NULL;
}

/* ---- Rows ---- */

static strid put_name(struct profile *p, const char *text)
{
	char clean[MAX_NAME];
	size_t n = text_shorten(clean, sizeof(clean), text ? text : "", NULL);

	return strtab_put_n(&p->strings, clean, n);
}

uint32_t join_runtime_row(struct profile *p, const struct runtime_frame *f)
{
	struct profile_function function = {.start_line = f->start_line};
	struct profile_line line = {.line = f->line};
	uint32_t module = profile_add_runtime(p, f->runtime);
	bool named = f->function && *f->function;

	if (!named)
		return profile_add_named_frame(p, module, 0, NULL, 0);
	function.name = put_name(p, f->function);
	function.file = put_name(p, f->file);
	line.function = profile_add_function(p, &function);
	if (line.function == PROFILE_NONE || function.name == STRID_EMPTY)
		return PROFILE_NONE;
	return profile_add_named_frame(p, module, 0, &line, 1);
}

static uint32_t marker_row(struct profile *p, enum profile_marker marker)
{
	const struct profile_module m = {
		.uid = PROFILE_UID_MARKER,
		.kind = PROFILE_MODULE_MARKER,
		.process = PROFILE_NONE,
		.path = strtab_put(&p->strings, "[marker]"),
	};

	return profile_add_frame(p, profile_add_module(p, &m), marker);
}

/* ---- Places ---- */

struct merge {
	struct join_item *to;
	uint32_t n;
	const struct runtime_frame *frames;
	uint32_t next, end;
	uint64_t low, high; /* stack pointers of the run so far */
	uint64_t hide_end;  /* native frames of the run below it are left out */
};

static void push_runtime(struct merge *m)
{
	const struct runtime_frame *f = &m->frames[m->next];

	if (f->sp_end > f->sp && f->sp_end > m->hide_end)
		m->hide_end = f->sp_end;
	m->to[m->n++] = (struct join_item){true, m->next++};
}

static void push_native(struct merge *m, uint32_t i, uint64_t sp)
{
	if (sp == 0) {
		m->to[m->n++] = (struct join_item){false, i};
		return;
	}
	if (sp < m->high) {
		m->low = sp;
		m->hide_end = 0;
	} else if (m->high == 0) {
		m->low = sp;
	}
	m->high = sp;
	while (m->next < m->end && m->frames[m->next].sp >= m->low && m->frames[m->next].sp <= sp)
		push_runtime(m);
	if (sp >= m->hide_end)
		m->to[m->n++] = (struct join_item){false, i};
}

static bool is_deep(const struct runtime_frames *frames)
{
	return frames->n > FRAME_SOURCE_MAX_FRAMES;
}

uint32_t join_order(const uint64_t *sp, uint32_t n, const struct runtime_frames *frames,
		    struct join_item *ret)
{
	struct merge m = {
		.to = ret,
		.frames = frames->items,
		.end = is_deep(frames) ? FRAME_SOURCE_MAX_FRAMES : (uint32_t)frames->n,
	};

	for (uint32_t i = 0; i < n; i++)
		push_native(&m, i, sp[i]);
	while (m.next < m.end)
		push_runtime(&m);
	return m.n;
}

/* ---- Stacks ---- */

static void push(struct joiner *j, uint32_t *n, uint32_t row)
{
	ensure(*n < j->max);
	j->rows[(*n)++] = row;
}

uint32_t joiner_stack(struct joiner *j, const struct walked_stack *stack,
		      const struct runtime_frames *frames, enum profile_marker marker,
		      uint32_t type)
{
	uint32_t n_items = join_order(stack->sp, stack->n_native, frames, j->items), n = 0;

	ensure(n_items <= j->max);
	for (uint32_t i = 0; i < stack->n_kernel; i++)
		push(j, &n, stack->rows[i]);
	for (uint32_t i = 0; i < n_items; i++) {
		const struct join_item *item = &j->items[i];

		push(j, &n,
		     item->runtime ? join_runtime_row(j->p, &frames->items[item->i])
				   : stack->rows[stack->n_kernel + item->i]);
	}
	for (uint32_t i = stack->n_kernel + stack->n_native; i < stack->n; i++)
		push(j, &n, stack->rows[i]);
	if (is_deep(frames) || frames->cut) {
		j->p->types[type].counters[PROFILE_STACKS_TOO_DEEP]++;
		push(j, &n, marker_row(j->p, PROFILE_MARKER_TOO_DEEP));
	}
	if (marker != PROFILE_N_MARKERS)
		push(j, &n, marker_row(j->p, marker));
	for (uint32_t i = 0; i < n; i++) {
		if (j->rows[i] == PROFILE_NONE)
			return PROFILE_NONE;
	}
	return n ? profile_add_stack(j->p, j->rows, n, stack->n_kernel) : PROFILE_NONE;
}
