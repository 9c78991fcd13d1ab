/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Of two walks of one sample that differ, ours and libdw's: which is right, as far as the bytes
 * show it. The bytes are code (is there a call before a return address?), mappings (is there code
 * at all?), and what the file says of a function (is it the outermost of its stack?).
 */
#include "unwind/unwind.h"

enum verdict {
	VERDICT_IDENTICAL,
	/* libdw ends early or leaves out callers: its frames are among ours, and each frame that is
	 * ours alone lies behind a call. What it has behind an outermost function does not count,
	 * nor behind one that moves to another stack, where ours ends and says so. */
	VERDICT_LOST_CALLERS,
	/* It ends before a caller that lies behind a call; further out is code without a file,
	 * where calls cannot be seen. */
	VERDICT_ENDS_EARLY,
	/* libdw's walk is wrong where it parts from ours, and ours ends there or goes on behind
	 * calls. */
	VERDICT_NO_MAPPING,  /* its frame, or the last one that both have, lies in no mapping */
	VERDICT_NO_CALL,     /* its frame lies behind no call */
	VERDICT_PAST_END,    /* it goes on behind an outermost function */
	VERDICT_OTHER_STACK, /* it goes on in a stack that was left, and from there into no mapping
			      */
	/* ours ends, and says so, in a function that moves to another stack; by the frame pointer
	 * libdw goes on, which may be right */
	VERDICT_CAUTIOUS,
	VERDICT_TRAMPOLINE, /* it leaves the signal trampoline by lr, not by what the kernel saved
			      */
	VERDICT_STALE_LR,   /* it takes lr for the caller, where lr is saved and was used since */
	VERDICT_TWICE,	    /* it takes one saved return address twice */
	VERDICT_CIRCLES,    /* it finds one frame again and again, until the array is full */
	VERDICT_UNDECIDED,  /* nothing of this: libdw may be right */
	VERDICT_N
};
extern const char *const verdict_names[VERDICT_N];

/* The sample, and how to look at what was mapped. ctx: of both functions. */
struct judge {
	const struct unwind_regs *regs;
	const uint8_t *stack;
	size_t n_stack;
	unwind_find_fn find;
	/* n bytes of code at address, false: they cannot be read. */
	bool (*read)(void *ctx, uint64_t address, uint8_t *ret, size_t n);
	void *ctx;
	size_t max_theirs; /* libdw's walk was cut to so many */
};

enum verdict judge_walks(const struct judge *j, const uint64_t *ours, size_t n_ours,
			 enum unwind_outcome outcome, const uint64_t *theirs, size_t n_theirs);
