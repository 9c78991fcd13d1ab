/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of JavaScript threads in V8 9 to 14, as in Node.js 16 to 26, read from outside after the
 * sample, while the process runs on. It knows the frames of the interpreter and of compiled code,
 * with the functions inlined there. V8's frames are on the native stack and have frame pointers;
 * the walk of the native frames calls it at each frame in code without a file or without call frame
 * information.
 *
 * Objects may have moved since the sample, or may lie. A function is accepted only if it matches
 * the code that its frame executes: the interpreter's frames have the bytecode array, and compiled
 * code is found from its address. The address of a function alone proves nothing. What we remember
 * of an address is compared with its contents now: with the number of the script and the position
 * in it, or, for objects that stayed the same for long (trust.h), in most walks with its own words
 * alone. Optimized code that is gone is taken for what it was when it was seen last, if the frame
 * has the function that it was made of. A frame without a proof is reported without a name.
 *
 * Not thread-safe. Bounded: about 4 MiB of memory for all processes, and 4 KiB for each; a budget
 * of reads for each walk.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct v8;

/*
 * image: where the file's first byte is mapped. memory: its function and context are copied, its
 * budget is not used. 0; -ENOENT: there is no V8 in it; -ENOTSUP: one that we do not understand
 * (*ret_why, a literal); -ENOMEM.
 */
int v8_new(struct v8 **ret, const struct memory *memory, uint64_t image, const char **ret_why);
struct v8 *v8_free(struct v8 *v);
DEFINE_CLEANUP(struct v8 *, v8_free)

/* "11.3.244"; did we ever test this version? */
const char *v8_release(const struct v8 *v);
bool v8_is_tried(const struct v8 *v);

/* How a frame was executing. */
enum v8_level { V8_INTERPRETED, V8_BASELINE, V8_OPTIMIZED, V8_WASM, V8_N_LEVELS };
const char *v8_level_name(enum v8_level level);
/* A frame's text, in UTF-8. Borrowed until the next walk. */
const char *v8_text(const struct v8 *v, strid id);

/* Call it before each walk, with the walk's budget. */
void v8_begin(struct v8 *v, uint32_t reads, uint64_t bytes);
/*
 * Steps over one physical frame to its caller. Puts the functions that were executing in the frame
 * into frames: *ret_n of them, innermost first; those beyond max are left out. In V8's own code,
 * such as a built-in function, there are none. RUNTIME_NOT_MINE: it does not look like a frame of
 * V8.
 */
enum runtime_step v8_step(struct v8 *v, const struct runtime_stack *stack,
			  struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			  size_t *ret_n);

/* Prints the version and where each offset came from, for people. */
void v8_explain(const struct v8 *v, FILE *out);

struct v8_stats {
	uint64_t steps, learned, stale; /* stale: a remembered address had other contents */
	uint64_t functions, unproven;	/* frames of JavaScript; those of them without a proof */
};
const struct v8_stats *v8_stats(const struct v8 *v);
