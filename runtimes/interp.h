/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Any interpreter whose frames are a chain of its own (chain.h), read at the sample: CPython, PHP,
 * Ruby. A new one is its files, and a row in interp.c.
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

/* What the image is shows which of them it is; as cpython_new(). */
int interp_new(struct interp **ret, const struct memory *memory, uint64_t image,
	       const char **ret_why);
struct interp *interp_free(struct interp *p);
DEFINE_CLEANUP(struct interp *, interp_free)

enum interp_kind interp_kind(const struct interp *p);
/* "CPython"; its release; whether that was ever tried. */
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
/* Range i of the code of the evaluation function, [start, end); false: there are not that many. */
bool interp_eval_range(const struct interp *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);

/* What it is and where each offset came from, for people. */
void interp_explain(const struct interp *p, FILE *out);
