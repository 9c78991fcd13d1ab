/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks of recorded samples of JavaScript threads. */
#include "runtimes/v8.h"
#include "tests/runtimes/recording.h"

/* Walks down to native code, and prints each function; how many there were. */
static inline size_t recorded_walk_v8(struct v8 *v, const struct recorded_walk *w, FILE *out)
{
	const struct runtime_stack stack = {w->stack, w->r[7], w->n, NULL};
	struct runtime_regs regs = {
		.pc = w->r[16], .sp = w->r[7], .fp = w->r[6], .innermost = true};
	enum runtime_step step = RUNTIME_STEP;
	size_t total = 0;

	memcpy(regs.r, w->r, sizeof(w->r));
	v8_begin(v, 4000, 4 << 20);
	while (step == RUNTIME_STEP) {
		struct stepped_frame frames[64];
		size_t n;

		step = v8_step(v, &stack, &regs, frames, 64, &n);
		for (size_t i = 0; i < n; i++)
			(void)fprintf(out, "  %s (%s:%u, from %u) %s%s\n",
				      v8_text(v, frames[i].function), v8_text(v, frames[i].file),
				      frames[i].line, frames[i].start_line,
				      v8_level_name((enum v8_level)frames[i].level),
				      frames[i].inlined ? ", inlined" : "");
		total += n;
	}
	(void)fprintf(out, "  = %d\n", (int)step);
	return total;
}
