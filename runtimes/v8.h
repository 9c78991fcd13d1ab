/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of JavaScript threads in V8 9 to 13, as in Node.js 16 to 24, read from outside and late:
 * while the process runs on. Frames of the interpreter and of what the compilers made, with what
 * was inlined there. V8's frames are on the native stack and have frame pointers; whoever walks the
 * native frames in between asks at each frame in code without a file or without call frame
 * information.
 *
 * What it reads may have moved since the sample, or be a lie. A function is believed only if what
 * it executes is what its frame says: the interpreter's frames have the bytecode array, and
 * compiled code is found from its address. The address of a function alone proves nothing. What is
 * remembered of an address is compared with what is there now: with the number of its script and
 * its place in it; where it was long the same (trust.h), in most walks with its own words alone. A
 * frame whose function is not proven is said to be one, without a name.
 *
 * Not thread-safe. Bounded: memory of all processes about 4 MiB, and 4 KiB of each; reads of one
 * walk by its budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct v8;

/* Whether a mapped file of that path may hold it, by its name: node, nodejs, libnode.so.N. */
bool v8_is_image(const char *path);

/*
 * image: where the file's first byte is mapped. memory: its function and context are copied, the
 * budget is the module's own. 0; -ENOENT: there is no V8 in it; -ENOTSUP: one that is not
 * understood (*ret_why, a literal); -ENOMEM.
 */
int v8_new(struct v8 **ret, const struct memory *memory, uint64_t image, const char **ret_why);
struct v8 *v8_free(struct v8 *v);
DEFINE_CLEANUP(struct v8 *, v8_free)

/* "11.3.244"; and whether this version was ever tried. */
const char *v8_release(const struct v8 *v);
bool v8_is_tried(const struct v8 *v);

/* How a frame was executing. */
enum v8_level { V8_INTERPRETED, V8_BASELINE, V8_OPTIMIZED, V8_WASM, V8_N_LEVELS };
const char *v8_level_name(enum v8_level level);
/* A frame's text: in UTF-8, valid until the next walk. */
const char *v8_text(const struct v8 *v, strid id);

/* Before each walk: its budget, in reads and bytes. */
void v8_begin(struct v8 *v, uint32_t reads, uint64_t bytes);
/*
 * One physical frame. Puts the functions that were executing in it into frames (innermost first, at
 * most max; more are left out), *ret_n of them: none in code of V8's own, such as a built-in
 * function. RUNTIME_NOT_MINE: nothing there looks like V8's.
 */
enum runtime_step v8_step(struct v8 *v, const struct runtime_stack *stack,
			  struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			  size_t *ret_n);

/* What it is and where each offset came from, for people. */
void v8_explain(const struct v8 *v, FILE *out);

struct v8_stats {
	uint64_t steps, learned, stale; /* stale: a remembered address had other contents */
	uint64_t functions, unproven;	/* frames of JavaScript, and those without a proof */
};
const struct v8_stats *v8_stats(const struct v8 *v);
