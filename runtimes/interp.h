/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Any interpreter whose frames are a chain of its own (chain.h), read at the sample: CPython, PHP,
 * Ruby. A new one is its files, and a row in interp.c.
 *
 * They are read from outside. The process may run on meanwhile or be hostile: a walk is bounded,
 * and what it read are bytes until each frame has been proven to be one. But only a stack that was
 * read while the thread stood still is the stack of one moment; the caller sees to that, and
 * compares addresses of frames with what the thread's registers and its native stack say.
 *
 * Not thread-safe. Bounded: about 2 MiB of memory for each process, reads of one walk by its
 * budget.
 */
#include <stdio.h>

#include "runtimes/chain.h"
#include "runtimes/memory.h"
#include "util/cleanup.h"

struct interp; /* of one process */

enum interp_kind { INTERP_CPYTHON, INTERP_PHP, INTERP_RUBY, INTERP_N_KINDS };

/* How telling the path of a mapped file is: the file of the largest number is to be looked into, 0:
 * it is no interpreter's. */
int interp_rank(const char *path);

/*
 * What the image has in it shows which of them it is. image: where the file's first byte is mapped.
 * memory: its function and context are copied, the budget is the module's own. 0; -ENOENT: there is
 * no interpreter in it; -ENOTSUP: one that is not understood (*ret_why, a literal); -EAGAIN: it has
 * not started yet; -ENOMEM.
 */
int interp_new(struct interp **ret, const struct memory *memory, uint64_t image,
	       const char **ret_why);
struct interp *interp_free(struct interp *p);
DEFINE_CLEANUP(struct interp *, interp_free)

enum interp_kind interp_kind(const struct interp *p);
/* "CPython"; its release, "3.11.7"; whether frames of this minor version were ever tried. */
const char *interp_name(const struct interp *p);
const char *interp_release(const struct interp *p);
bool interp_is_tried(const struct interp *p);

/* Before each walk: its budget, in reads and bytes. */
void interp_begin(struct interp *p, uint32_t reads, uint64_t bytes);
/* The frames of a thread, innermost first, at most max of them (and CHAIN_MAX_FRAMES), *ret_n. */
enum chain_result interp_walk(struct interp *p, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n);
/* A frame's text, valid until the next walk. */
const char *interp_text(const struct interp *p, strid id);
/*
 * Range i of the code of the evaluation function, also of parts of it that the compiler has put
 * elsewhere: runtime addresses [start, end). false: there are not that many. They may be known only
 * after the first walk that found a frame.
 */
bool interp_eval_range(const struct interp *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);
/* Lives as long as p. */
const struct chain_stats *interp_stats(const struct interp *p);

/* What it is and where each offset came from, for people. */
void interp_explain(const struct interp *p, FILE *out);
