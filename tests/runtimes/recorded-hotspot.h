/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks of recorded samples of Java threads. */
#include "runtimes/hotspot.h"
#include "tests/runtimes/recording.h"

static inline const char *recording_step_name(enum runtime_step step)
{
	static const char *const names[RUNTIME_N_STEPS] = {
		[RUNTIME_STEP] = "native code",	     [RUNTIME_TRUNCATED] = "end of the copy",
		[RUNTIME_UNPROVEN] = "not proven",   [RUNTIME_ELSEWHERE] = "in the heap",
		[RUNTIME_SPENT] = "budget is spent",
	};

	return names[step];
}

static inline struct runtime_regs recording_regs(const struct recorded_walk *w)
{
	struct runtime_regs regs = {.pc = w->r[RECORDED_PC],
				    .sp = w->r[RECORDED_SP],
				    .fp = w->r[RECORDED_FP],
				    .innermost = true};

	for (size_t i = 0; i < RECORDING_REGS; i++)
		regs.r[recording_register(i)] = w->r[i];
	return regs;
}

/* Walks from Java code down to native code, and prints each frame. */
static inline enum runtime_step recording_walk(struct hotspot *h, const struct recorded_walk *w,
					       FILE *out)
{
	const struct runtime_stack stack = {w->stack, w->r[RECORDED_SP], w->n, NULL};
	struct runtime_regs regs = recording_regs(w);
	enum runtime_step step = RUNTIME_STEP;

	hotspot_begin(h, 4000, 1 << 20);
	while (step == RUNTIME_STEP && hotspot_has(h, regs.pc)) {
		struct stepped_frame frames[64];
		size_t n;

		step = hotspot_step(h, &stack, &regs, frames, 64, &n);
		for (size_t i = 0; i < n; i++)
			(void)fprintf(out, "  %s (%s:%u, from %u) %s%s\n",
				      hotspot_text(h, frames[i].function),
				      hotspot_text(h, frames[i].file), frames[i].line,
				      frames[i].start_line,
				      hotspot_level_name((enum hotspot_level)frames[i].level),
				      frames[i].inlined ? ", inlined" : "");
	}
	(void)fprintf(out, "  = %s\n", recording_step_name(step));
	return step;
}
