/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frames that runtimes know by themselves (runtimes/): Java's and JavaScript's. The unwinder asks
 * at each frame in code without a file or without call frame information; what it is told is kept
 * until the next walk, with the names.
 *
 * A process's memory is read through a descriptor of the broker's, late, while the process runs on.
 * Only memory is read that cannot keep us waiting: anonymous, or of a file on the filesystem of the
 * runtime's own library, which the broker has found harmless when it opened that. Reads have a
 * share of the wall clock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiler/frame-source.h"
#include "unwind/unwind.h"

struct runtimes;
struct process_runtime; /* what is known of one process; runtimes_free_process() */

/* Where the memory and maps of a process come from: an owned descriptor or -errno. */
struct runtimes_source {
	void *ctx;
	int (*open_memory)(void *ctx, uint32_t pid);
	int (*open_maps)(void *ctx, uint32_t pid);
	/* Before and after each read of a process's memory. */
	void (*reading)(void *ctx, uint32_t pid, bool begins);
};

/* 0 or -ENOMEM. */
int runtimes_new(struct runtimes **ret, const struct runtimes_source *source);
struct runtimes *runtimes_free(struct runtimes *r);

/* How telling the path of a mapped file is: of a process's files the one of the largest number is
 * its runtime's; 0: it is none. */
int runtimes_rank(const char *path);
/*
 * A process with such a library, whose first byte is (or would be) mapped at image, from a file of
 * that device. NULL: no more of them, or no memory. What is read of it is read at its walks.
 */
struct process_runtime *runtimes_add_process(struct runtimes *r, uint32_t pid, uint64_t image,
					     uint32_t major, uint32_t minor);
struct process_runtime *runtimes_free_process(struct runtimes *r, struct process_runtime *p);

/* Before each walk. */
void runtimes_begin(struct runtimes *r);
/* One frame of it, as unwind_foreign_fn. */
enum unwind_answer runtimes_step(struct runtimes *r, struct process_runtime *p,
				 const struct unwind_foreign *frame, struct unwind_regs *regs,
				 enum unwind_outcome *ret_outcome, uint64_t *ret_missing);
/* Behind it. */
void runtimes_end(struct runtimes *r);

/* What stands for the i-th frame of the walk, innermost first, to be asked for in their order;
 * *ret_n 0: it is native. Valid until the next walk. */
const struct runtime_frame *runtimes_frames(struct runtimes *r, size_t i, size_t *ret_n);
/* Why a walk ended in a runtime's frame; PROFILE_N_MARKERS: it did not. */
enum profile_marker runtimes_marker(const struct runtimes *r);
