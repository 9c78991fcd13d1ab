/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks of recorded Python threads, whose numbers are their samples' first registers. */
#include "runtimes/cpython.h"
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

/* Prints each frame. */
static inline enum chain_result recorded_walk_python(struct cpython *p,
						     const struct recorded_walk *w, FILE *out)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	enum chain_result result;
	const struct chained_thread thread = {.tid = (uint32_t)w->r[RECORDED_TID]};
	size_t n;

	cpython_begin(p, 4000, 1 << 20);
	result = cpython_walk(p, &thread, frames, CHAIN_MAX_FRAMES, &n);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "  %s (%s:%u, from %u)%s\n", cpython_text(p, frames[i].function),
			      cpython_text(p, frames[i].file), frames[i].line, frames[i].start_line,
			      frames[i].entry ? " entry" : "");
	(void)fprintf(out, "  = %s\n", recorded_result_name(result));
	return result;
}
