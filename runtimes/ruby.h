/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of Ruby threads in CRuby 2.7 to 3.4, read from outside. The process may run on meanwhile
 * or be hostile: a walk is bounded, and what it read are bytes until each frame has been proven to
 * be one (its code is an object of that kind, its place is inside of it). But only a stack that was
 * read while the thread stood still is the stack of one moment; whoever calls sees to that, and
 * compares addresses of frames with what the thread's registers and its native stack say.
 *
 * Not thread-safe. Bounded: memory of one process about 1 MiB, reads of one walk by its budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/chain.h"
#include "runtimes/memory.h"
#include "util/cleanup.h"

struct ruby; /* of one process */

/* Whether a mapped file of that path may hold Ruby, by its name: 2, libruby*.so*; 1, ruby, ruby3.1,
 * which may only load it from a library; 0, not. */
int ruby_rank(const char *path);

/*
 * image: where the file's first byte is mapped. memory: its function and context are copied, the
 * budget is the module's own. 0; -ENOENT: there is no Ruby in it; -ENOTSUP: one that is not
 * understood (*ret_why, a literal); -EAGAIN: it has not started yet; -ENOMEM.
 */
int ruby_new(struct ruby **ret, const struct memory *memory, uint64_t image, const char **ret_why);
struct ruby *ruby_free(struct ruby *p);
DEFINE_CLEANUP(struct ruby *, ruby_free)

/* "3.1.2"; and whether frames of this minor version were ever tried. */
const char *ruby_release(const struct ruby *p);
bool ruby_is_tried(const struct ruby *p);

/* Of a frame, valid until the next walk. Functions: "each", "block in each", "<main>". */
const char *ruby_text(const struct ruby *p, strid id);

/* Before each walk: its budget, in reads and bytes. */
void ruby_begin(struct ruby *p, uint32_t reads, uint64_t bytes);
/*
 * The frames of a thread, innermost first, at most max of them (and CHAIN_MAX_FRAMES), *ret_n.
 * Methods that are written in C are not evaluated: their address is 0.
 */
enum chain_result ruby_walk(struct ruby *p, const struct chained_thread *thread,
			    struct chained_frame *frames, size_t max, size_t *ret_n);

/* As cpython_eval_range(); known after the first walk that found a frame. */
bool ruby_eval_range(const struct ruby *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);

/* What it is and where each offset came from, for people. */
void ruby_explain(const struct ruby *p, FILE *out);

struct ruby_stats {
	uint64_t walks, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t results[CHAIN_N_RESULTS];
};
const struct ruby_stats *ruby_stats(const struct ruby *p);
