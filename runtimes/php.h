/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of PHP 7.4 to 8.5 (builds without threads, "NTS"), read from outside. The process may run
 * on meanwhile or be hostile: a walk is bounded, and what it read are bytes until each frame has
 * been proven to be one (its function is of a kind that there is, its place is an instruction of
 * it). But only a stack that was read while the thread stood still is the stack of one moment;
 * whoever calls sees to that, and compares addresses of frames with what the thread's registers and
 * its native stack say.
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

struct php; /* of one process */

/* Whether a mapped file of that path may hold PHP, by its name: 2, libphp*.so of a web server; 1,
 * php, php8.2, php-fpm8.2 ...; 0, not. */
int php_rank(const char *path);

/*
 * image: where the file's first byte is mapped. memory: its function and context are copied, the
 * budget is the module's own. 0; -ENOENT: there is no PHP in it; -ENOTSUP: one that is not
 * understood (*ret_why, a literal); -EAGAIN: it has not started yet; -ENOMEM.
 */
int php_new(struct php **ret, const struct memory *memory, uint64_t image, const char **ret_why);
struct php *php_free(struct php *p);
DEFINE_CLEANUP(struct php *, php_free)

/* "8.2.31", "7.4"; and whether frames of this minor version were ever tried. */
const char *php_release(const struct php *p);
bool php_is_tried(const struct php *p);

/* Of a frame, valid until the next walk. Functions: "Class::method", "strlen", "{main}", "require"
 * for the code of a file. */
const char *php_text(const struct php *p, strid id);

/* Before each walk: its budget, in reads and bytes. */
void php_begin(struct php *p, uint32_t reads, uint64_t bytes);
/*
 * The frames of the one thread that runs PHP, innermost first, at most max of them (and
 * CHAIN_MAX_FRAMES), *ret_n: of any thread that is asked for. Functions that are written in C, and
 * generators that wait for others, are not evaluated: their address is 0.
 */
enum chain_result php_walk(struct php *p, const struct chained_thread *thread,
			   struct chained_frame *frames, size_t max, size_t *ret_n);

/* As cpython_eval_range(). */
bool php_eval_range(const struct php *p, size_t i, uint64_t *ret_start, uint64_t *ret_end);

/* What it is and where each offset came from, for people. */
void php_explain(const struct php *p, FILE *out);

struct php_stats {
	uint64_t walks, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t results[CHAIN_N_RESULTS];
};
const struct php_stats *php_stats(const struct php *p);
