/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Interpreters that keep their frames as a chain of their own (chain.h), read at the sample: those
 * of RUNTIMES_WITH_CHAIN (util/runtime-rows.h). A new one needs a row there, and a file of its own
 * with what interp-internal.h asks for.
 *
 * We read from outside. The process may run on meanwhile or be hostile, so a walk is bounded, and
 * each frame must be proven to be one. That does not prove a stack of one moment: the caller keeps
 * the thread from running meanwhile, and compares the addresses of frames with the thread's
 * registers and native stack.
 *
 * Not thread-safe. Bounded: about 3 MiB of memory for all processes of a kind, and 24 KiB for each;
 * a budget of reads for each walk.
 */
#include <stdio.h>

#include "runtimes/chain.h"
#include "runtimes/memory.h"
#include "util/cleanup.h"
#include "util/runtime-rows.h"

struct interp; /* of one process */

/*
 * Recognises the interpreter by the contents of the image. image: where the file's first byte is
 * mapped. memory: its function and context are copied, its budget is not used. 0; -ENOENT: there is
 * no interpreter in it; -ENOTSUP: one that we do not understand (*ret_why, a literal); -EAGAIN: it
 * has not started yet; -ENOMEM.
 */
int interp_new(struct interp **ret, const struct memory *memory, uint64_t image,
	       const char **ret_why);
struct interp *interp_free(struct interp *p);
DEFINE_CLEANUP(struct interp *, interp_free)

enum runtime_kind interp_kind(const struct interp *p);
/* NULL: a runtime of that kind keeps no chain. */
const struct chain_rules *interp_rules(enum runtime_kind kind);
/* "CPython"; its release, "3.11.7"; did we ever test this minor version? */
const char *interp_name(const struct interp *p);
const char *interp_release(const struct interp *p);
bool interp_is_tried(const struct interp *p);

/* Call it before each walk, with the walk's budget. */
void interp_begin(struct interp *p, uint32_t reads, uint64_t bytes);
/* Reads the frames of a thread: *ret_n of them, innermost first, at most max and
 * CHAIN_MAX_FRAMES. */
enum chain_result interp_walk(struct interp *p, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n);
/* A frame's text. Borrowed until the next walk. */
const char *interp_text(const struct interp *p, strid id);
/*
 * Range i of the code of the evaluation function, with the parts that the compiler put elsewhere:
 * runtime addresses [start, end). false: there are fewer. The ranges may become known only with the
 * first walk that finds a frame.
 */
bool interp_eval_range(const struct interp *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);
/* Borrowed from p. */
const struct chain_stats *interp_stats(const struct interp *p);

/* Prints the version and where each offset came from, for people. */
void interp_explain(const struct interp *p, FILE *out);
