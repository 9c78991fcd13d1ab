/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profile/native-frames.h"

#include <stdlib.h>

#include "src/profile/profile.h"
#include "util/cleanup.h"

/* Marks in kinds[] by module, of one stack. */
enum { OTHER, INTERPRETER };

static const struct profile_module *module_of(const struct profile *p, uint32_t frame)
{
	return &p->modules.items[p->frames.items[frame].module];
}

/* Native frame i calls one of a runtime. Those of a stack go from callee to caller. */
static bool is_interpreter(const struct profile *p, const uint32_t *frames, uint32_t i)
{
	return i > 0 && module_of(p, frames[i])->kind == PROFILE_MODULE_FILE &&
	       module_of(p, frames[i - 1])->kind == PROFILE_MODULE_RUNTIME;
}

static uint32_t mark(const struct profile *p, const uint32_t *frames, uint32_t n, uint8_t *modules,
		     uint8_t as)
{
	uint32_t n_marked = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (is_interpreter(p, frames, i)) {
			modules[p->frames.items[frames[i]].module] = as;
			n_marked++;
		}
	}
	return n_marked;
}

/* The row of a stack without them; its own, if it has none or there is no room. */
static uint32_t hide(struct profile *p, uint32_t stack, uint8_t *modules, uint32_t *scratch)
{
	uint32_t n, n_kept = 0, row;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	if (mark(p, frames, n, modules, INTERPRETER) == 0)
		return stack;
	for (uint32_t i = 0; i < n; i++) {
		if (modules[p->frames.items[frames[i]].module] != INTERPRETER)
			scratch[n_kept++] = frames[i];
	}
	(void)mark(p, frames, n, modules, OTHER);
	row = profile_add_stack(p, scratch, n_kept, p->stacks.items[stack].n_kernel);
	return row == PROFILE_NONE ? stack : row;
}

static uint32_t deepest(const struct profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->stacks.n; i++) {
		if (p->stacks.items[i].n > n)
			n = p->stacks.items[i].n;
	}
	return n;
}

void profile_hide_native_frames(struct profile *p)
{
	uint32_t n_stacks = p->stacks.n;
	_cleanup_free_ uint32_t *scratch = calloc((size_t)deepest(p) + 1, sizeof(*scratch));
	/* The row for each stack that a sample has; 0: not looked at, else one more. */
	_cleanup_free_ uint32_t *now = calloc((size_t)n_stacks + 1, sizeof(*now));
	_cleanup_free_ uint8_t *modules = calloc((size_t)p->modules.n + 1, sizeof(*modules));

	for (uint32_t type = 0; scratch && now && modules && type < p->n_types; type++) {
		for (uint32_t i = 0; i < p->types[type].samples.n; i++) {
			struct profile_sample *s = &p->types[type].samples.items[i];

			if (!now[s->stack])
				now[s->stack] = hide(p, s->stack, modules, scratch) + 1;
			s->stack = now[s->stack] - 1;
		}
	}
}
