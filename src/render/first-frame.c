/* SPDX-License-Identifier: Apache-2.0 */
#include "src/render/first-frame.h"

#include <string.h>

#include "src/render/waits.h"
#include "util/cleanup.h"

#define MAX_DEPTH 32 /* of an allocator's own calls */

/* A name without the prefixes that C libraries have for their own use. */
static const char *plain_name(const char *name)
{
	static const char *const prefixes[] = {"__GI_", "__libc_", "__"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			name += strlen(prefixes[i]);
	}
	return name;
}

/* What programs call for memory; what is below, such as _int_malloc, differs between allocators. */
static bool is_allocation(const char *name)
{
	static const char *const names[] = {"malloc",	      "malloc2",       "calloc",
					    "calloc2",	      "realloc",       "reallocarray",
					    "memalign",	      "_mid_memalign", "valloc",
					    "posix_memalign", "aligned_alloc", "pvalloc"};

	name = plain_name(name);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return strncmp(name, "operator new", strlen("operator new")) == 0;
}

static bool allocates(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	uint32_t function =
		f->n_lines ? p->lines.items[f->first_line + f->n_lines - 1].function : 0;

	return f->n_lines && is_allocation(profile_text(p, p->functions.items[function].name));
}

static uint32_t first_caller(const struct profile *p, uint32_t stack)
{
	uint32_t n, first = 0;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	for (uint32_t i = 0; i + 1 < n && i < MAX_DEPTH && (!first || first == i); i++) {
		if (allocates(p, frames[i]) && !profile_is_marked(p, frames[i + 1]))
			first = i + 1;
	}
	return first;
}

uint32_t first_frame(const struct profile *p, uint32_t stack)
{
	if (profile_is_off_cpu(p, 0) || profile_is_wall(p, 0) || profile_is_wakeups(p, 0))
		return waits_first_frame(p, stack);
	return profile_is_growth(p, 0) ? first_caller(p, stack) : 0;
}
