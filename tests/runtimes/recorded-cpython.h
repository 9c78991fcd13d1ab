/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks of recorded Python threads. */
#include "runtimes/cpython.h"
#include "tests/runtimes/recorded-chain.h"

/* Prints each frame. */
static inline enum chain_result recorded_walk_python(struct cpython *p,
						     const struct recorded_walk *w, FILE *out)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	const struct chained_thread thread = {.tid = (uint32_t)w->r[RECORDED_TID]};
	enum chain_result result;
	size_t n;

	cpython_begin(p, 4000, 1 << 20);
	result = cpython_walk(p, &thread, frames, CHAIN_MAX_FRAMES, &n);
	for (size_t i = 0; i < n; i++)
		recorded_print_chain(&frames[i], cpython_text(p, frames[i].function),
				     cpython_text(p, frames[i].file), out);
	(void)fprintf(out, "  = %s\n", recorded_result_name(result));
	return result;
}
