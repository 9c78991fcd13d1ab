/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks that interpreters keep as chains of frames of their own, beside the native stack, and that
 * are read at the sample: what all such interpreters tell of a thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "util/strtab.h"

enum { CHAIN_MAX_FRAMES = 512 };

/* Whose stack it is. */
struct chained_thread {
	uint32_t tid;		   /* in the process's own pid namespace */
	uint32_t n_registers;	   /* 0: they are not known */
	uint64_t pointer;	   /* the thread pointer; 0: not known */
	const uint64_t *registers; /* values in its registers, in any order */
};

/* Texts: of the interpreter that was asked. They are a stranger's words, in UTF-8. */
struct chained_frame {
	strid function;		   /* as qualified as the interpreter has it */
	strid file;		   /* as the interpreter has it */
	uint32_t line, start_line; /* 0: not known */
	uint64_t address;	   /* of the interpreter's frame object or struct */
	bool entry; /* the outermost frame of its native call of the evaluation function */
};

/* The search for a loop, by Brent: of addresses that repeat, one that is kept while steps double is
 * met again. power: 16 at first. */
struct chain_loop {
	uint64_t met;
	uint32_t since, power;
};

static inline bool chain_is_loop(struct chain_loop *l, uint64_t at)
{
	if (at == l->met)
		return true;
	if (l->since++ == l->power) {
		l->power *= 2;
		l->since = 0;
		l->met = at;
	}
	return false;
}

enum chain_result {
	CHAIN_WHOLE,	 /* up to the thread's first frame */
	CHAIN_CUT,	 /* the callers of the outermost one are left out: max is reached */
	CHAIN_NO_THREAD, /* the interpreter does not know the thread, or runs nothing in it */
	CHAIN_UNPROVEN,	 /* the bytes there form no chain of frames; the frames before are given */
	CHAIN_SPENT,	 /* the budget of this walk; frames before are given */
	CHAIN_N_RESULTS
};

/* Since the start: walks, by result, and what they cost. */
struct chain_stats {
	uint64_t walks, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t results[CHAIN_N_RESULTS];
};
