/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profile/native-frames.h"

#include <stdlib.h>
#include <string.h>

#include "src/profile/profile.h"
#include "util/cleanup.h"

/* Marks of modules. */
enum { OTHER, INTERPRETER_HERE, INTERPRETER };

static uint32_t kind_of(const struct profile *p, uint32_t frame)
{
	return p->modules.items[p->frames.items[frame].module].kind;
}

/* Frames of a stack go from callee to caller. */
static bool calls_runtime(const struct profile *p, const uint32_t *frames, uint32_t i)
{
	return i > 0 && kind_of(p, frames[i]) == PROFILE_MODULE_FILE &&
	       kind_of(p, frames[i - 1]) == PROFILE_MODULE_RUNTIME;
}

/* The same, and certainly: a runtime's innermost frame may be there before the native call that
 * evaluates it, at any function then. */
static bool surely_calls_runtime(const struct profile *p, const uint32_t *frames, uint32_t i)
{
	uint32_t inner = i > 1 ? kind_of(p, frames[i - 2]) : PROFILE_N_MODULE_KINDS;

	return calls_runtime(p, frames, i) &&
	       (inner == PROFILE_MODULE_FILE || inner == PROFILE_MODULE_RUNTIME);
}

static void mark_everywhere(const struct profile *p, uint8_t *modules)
{
	for (uint32_t row = 0; row < p->stacks.n; row++) {
		uint32_t n;
		const uint32_t *frames = profile_stack_frames(p, row, &n);

		for (uint32_t i = 0; i < n; i++) {
			if (surely_calls_runtime(p, frames, i))
				modules[p->frames.items[frames[i]].module] = INTERPRETER;
		}
	}
}

/* In one stack. Returns whether it has a runtime's frame. */
static bool mark_here(const struct profile *p, const uint32_t *frames, uint32_t n, uint8_t *modules,
		      uint8_t as)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *mark = &modules[p->frames.items[frames[i]].module];

		any |= kind_of(p, frames[i]) == PROFILE_MODULE_RUNTIME;
		if (calls_runtime(p, frames, i) && *mark != INTERPRETER)
			*mark = as;
	}
	return any;
}

/* Compiled code that calls itself is one: all of it is the interpreter's, or none. */
static uint32_t end_of_compiled(const struct profile *p, const uint32_t *frames, uint32_t n,
				uint32_t i)
{
	while (i < n && kind_of(p, frames[i]) == PROFILE_MODULE_JIT)
		i++;
	return i;
}

static bool is_runtime(const struct profile *p, const uint32_t *frames, uint32_t n, uint32_t i)
{
	return i < n && kind_of(p, frames[i]) == PROFILE_MODULE_RUNTIME;
}

/* Returns how many stay. */
static uint32_t keep_others(const struct profile *p, const uint32_t *frames, uint32_t n,
			    const uint8_t *modules, uint32_t *ret)
{
	uint32_t n_kept = 0, end;

	for (uint32_t i = 0; i < n; i = end) {
		end = end_of_compiled(p, frames, n, i);
		if (end == i) {
			end++;
			if (modules[p->frames.items[frames[i]].module] != OTHER)
				continue;
		} else if ((i > 0 && is_runtime(p, frames, n, i - 1)) ||
			   is_runtime(p, frames, n, end)) {
			continue;
		}
		memcpy(ret + n_kept, frames + i, (end - i) * sizeof(*ret));
		n_kept += end - i;
	}
	return n_kept;
}

/* The row of a stack without them; its own, if it has none or there is no room. */
static uint32_t hide(struct profile *p, uint32_t stack, uint8_t *modules, uint32_t *scratch)
{
	uint32_t n, n_kept = 0, row;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	if (mark_here(p, frames, n, modules, INTERPRETER_HERE))
		n_kept = keep_others(p, frames, n, modules, scratch);
	(void)mark_here(p, frames, n, modules, OTHER);
	if (n_kept == 0 || n_kept == n)
		return stack;
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

	if (modules)
		mark_everywhere(p, modules);
	for (uint32_t type = 0; scratch && now && modules && type < p->n_types; type++) {
		for (uint32_t i = 0; i < p->types[type].samples.n; i++) {
			struct profile_sample *s = &p->types[type].samples.items[i];

			if (!now[s->stack])
				now[s->stack] = hide(p, s->stack, modules, scratch) + 1;
			s->stack = now[s->stack] - 1;
		}
	}
}
