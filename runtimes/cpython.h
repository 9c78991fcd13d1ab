/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of Python threads in CPython 3.6 to 3.15, read from outside. The process may run on
 * meanwhile or be hostile: a walk is bounded, and what it read are bytes until each frame has been
 * proven to be one (its code object has the type of code objects, its position is inside the
 * bytecode). But only a stack that was read while the thread stood still is the stack of one
 * moment; whoever calls sees to that, and compares addresses of frames with what the thread's
 * registers and its native stack say.
 *
 * Not thread-safe. Bounded: memory of all processes about 2 MiB, and 24 KiB of each; reads of one
 * walk by its budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/chain.h"
#include "runtimes/memory.h"
#include "util/cleanup.h"

struct cpython; /* of one process */

/*
 * Whether a mapped file of that path may hold the interpreter, by its name: 2, libpython3.N*.so*;
 * 1, python3.N, which may only load it from a library; 0, not. An interpreter in a program of
 * another name is found by cpython_new() alone.
 */
int cpython_rank(const char *path);

/*
 * image: where the file's first byte is mapped. memory: its function and context are copied, the
 * budget is the module's own. 0; -ENOENT: there is no CPython in it; -ENOTSUP: one that is not
 * understood (*ret_why, a literal); -EAGAIN: it has not started yet; -ENOMEM.
 */
int cpython_new(struct cpython **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct cpython *cpython_free(struct cpython *p);
DEFINE_CLEANUP(struct cpython *, cpython_free)

/* "3.11.7"; and whether frames of this minor version were ever tried. */
const char *cpython_release(const struct cpython *p);
bool cpython_is_tried(const struct cpython *p);

/* Of a frame, valid until the next walk. Functions: "Outer.method.<locals>.inner"; before 3.11
 * "inner". */
const char *cpython_text(const struct cpython *p, strid id);

/* Before each walk: its budget, in reads and bytes. */
void cpython_begin(struct cpython *p, uint32_t reads, uint64_t bytes);
/*
 * The frames of a thread, innermost first, at most max of them (and CHAIN_MAX_FRAMES), *ret_n.
 */
enum chain_result cpython_walk(struct cpython *p, const struct chained_thread *thread,
			       struct chained_frame *frames, size_t max, size_t *ret_n);

/*
 * Range i of the code of the evaluation function, also of parts of it that the compiler has put
 * elsewhere: runtime addresses [start, end). false: there are not that many.
 */
bool cpython_eval_range(const struct cpython *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);

/* What it is and where each offset came from, for people. */
void cpython_explain(const struct cpython *p, FILE *out);

struct cpython_stats {
	uint64_t walks, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t results[CHAIN_N_RESULTS];
};
const struct cpython_stats *cpython_stats(const struct cpython *p);
