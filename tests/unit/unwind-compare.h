/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks the same copied registers and stack by us and by libdw, and counts how they agree. */
#include "tests/corpus/judge.h"
#include "tests/corpus/oracle.h"
#include "tests/unit/unwind-proc.h"

struct tally {
	uint64_t samples, frames, complete;
	struct register_tally registers;
	uint64_t verdicts[VERDICT_N]; /* what libdw does differently (tests/corpus/judge.h) */
	uint64_t outcomes[UNWIND_N_OUTCOMES];
};

struct comparison {
	struct unwinder *u;
	struct proc_maps maps;
	struct oracle *oracle;
	uint64_t strange_start, strange_end; /* code libdw cannot know: what it says from there on
						does not count */
	struct tally t;
	unsigned int shown; /* of the disagreements printed so far */
};

void compare_sample(struct comparison *c, const struct proc_sample *sample);
/* A few lines: what is in the tally. */
void comparison_print(const struct comparison *c, unsigned int steps);
