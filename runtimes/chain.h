/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks that interpreters keep as chains of their own frames, beside the native stack. They are
 * read at the sample. These are the types that all such interpreters share.
 */
#include <stdbool.h>
#include <stdint.h>

#include "util/strtab.h"

enum { CHAIN_MAX_FRAMES = 512 };

/* Whose stack it is. */
struct chained_thread {
	uint32_t tid;		   /* in the process's own pid namespace; 0: unknown */
	uint32_t n_registers;	   /* 0: unknown */
	uint64_t pointer;	   /* the thread pointer; 0: unknown */
	uint64_t stack;		   /* the stack pointer; 0: unknown */
	const uint64_t *registers; /* values in its registers, in any order */
};

/* Texts are ids of the interpreter that was asked: untrusted, in UTF-8. */
struct chained_frame {
	strid function;		   /* qualified as far as the interpreter does */
	strid file;		   /* as the interpreter writes it */
	uint32_t line, start_line; /* 0: unknown */
	uint64_t address;	   /* of the interpreter's frame object or struct */
	bool entry; /* the outermost frame of one native call of the evaluation function */
};

/* Brent's search for a loop in a chain: it keeps an address for 16, 32, 64 ... steps, and a loop
 * must meet it again. Set power to 16 at first. */
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

/* How an interpreter's frames are proven in the native stack (src/profiler/chain-places.h). */
struct chain_rules {
	/* An evaluation saves the frame of its caller, which those between need not. */
	bool callee_saves;
	/* The chain gets a frame a moment before its native call begins, and loses it a moment
	 * before that ends. */
	bool changes_early;
	/* Which thread the chain is of is not known. */
	bool is_anyones;
	/* It compiles functions into code that a native walk does not lead through. */
	bool compiles;
	/* Programs may begin a chain anew upon the native stack of another one. */
	bool begins_anew;
	/* Such code is called as the evaluation is. */
	bool calls_compiled;
};

enum chain_result {
	CHAIN_WHOLE,	 /* up to the thread's first frame */
	CHAIN_CUT,	 /* max is reached: the outermost frames are missing */
	CHAIN_NO_THREAD, /* the interpreter does not know the thread, or runs nothing in it */
	CHAIN_UNPROVEN,	 /* the next bytes are no frame; the frames up to there are valid */
	CHAIN_SPENT,	 /* this walk's budget is used up; the frames up to there are valid */
	CHAIN_N_RESULTS
};

/* Since the start: walks, by result, and their cost. */
struct chain_stats {
	uint64_t walks, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t results[CHAIN_N_RESULTS];
};
