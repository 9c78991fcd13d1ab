/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks of recorded threads of interpreters, whose numbers are their samples' first registers. */
#include "runtimes/interp.h"
#include "tests/runtimes/recording.h"

enum { RECORDED_TID = 0 };

static inline const char *recorded_result_name(enum chain_result result)
{
	static const char *const names[CHAIN_N_RESULTS] = {
		[CHAIN_WHOLE] = "whole",	   [CHAIN_CUT] = "cut",
		[CHAIN_NO_THREAD] = "no thread",   [CHAIN_UNPROVEN] = "not proven",
		[CHAIN_SPENT] = "budget is spent",
	};

	return names[result];
}

static inline void recorded_print_chain(const struct chained_frame *f, const char *function,
					const char *file, FILE *out)
{
	(void)fprintf(out, "  %s (%s:%u, from %u)%s%s\n", function, file, f->line, f->start_line,
		      f->entry ? " entry" : "", f->address ? "" : " not evaluated");
}

/* Prints each frame. */
static inline enum chain_result recorded_walk_chain(struct interp *p, const struct recorded_walk *w,
						    FILE *out)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	const struct chained_thread thread = {.tid = (uint32_t)w->r[RECORDED_TID]};
	enum chain_result result;
	size_t n;

	interp_begin(p, 4000, 1 << 20);
	result = interp_walk(p, &thread, frames, CHAIN_MAX_FRAMES, &n);
	for (size_t i = 0; i < n; i++)
		recorded_print_chain(&frames[i], interp_text(p, frames[i].function),
				     interp_text(p, frames[i].file), out);
	(void)fprintf(out, "  = %s\n", recorded_result_name(result));
	return result;
}
