/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frames that only a runtime knows (runtimes/): Java's and JavaScript's. The unwinder asks at each
 * frame in code without a file or without call-frame information; the answers are kept until the
 * next walk, with the names.
 *
 * The process's memory is read late, while the process runs on (process-memory.h). Reads have a
 * limited share of the time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiler/frame-source.h"
#include "unwind/unwind.h"

struct memory_source;
struct runtimes;
struct process_runtime; /* of one process; runtimes_free_process() */

/* source: copied. n_cpus: that are sampled; the share of the time grows with their number. 0 or
 * -ENOMEM. */
int runtimes_new(struct runtimes **ret, const struct memory_source *source, uint32_t n_cpus);
struct runtimes *runtimes_free(struct runtimes *r);

/*
 * Adds a process with a runtime, whose first byte is (or would be) mapped at image, from a
 * file on that device. It is read at its walks. NULL: there are too many, or no memory.
 */
struct process_runtime *runtimes_add_process(struct runtimes *r, uint32_t pid, uint64_t image,
					     uint32_t major, uint32_t minor);
struct process_runtime *runtimes_free_process(struct runtimes *r, struct process_runtime *p);

/* A thread began. Does it have functions of its own, which are gone when it ends? */
bool runtimes_see_thread(struct process_runtime *p);

/* Call it before each walk. */
void runtimes_begin(struct runtimes *r);
/* Steps over one frame of the walk, as unwind_foreign_fn. */
enum unwind_answer runtimes_step(struct runtimes *r, struct process_runtime *p,
				 const struct unwind_foreign *frame, struct unwind_regs *regs,
				 enum unwind_outcome *ret_outcome, uint64_t *ret_missing);
/* Call it after each walk. */
void runtimes_end(struct runtimes *r);

/* The runtime's frames that replace the i-th frame of the walk, innermost first; ask for them in
 * this order. *ret_n 0: the frame is native. Valid until the next walk. */
const struct runtime_frame *runtimes_frames(struct runtimes *r, size_t i, size_t *ret_n);
/* Does the i-th frame of the walk stand for no function, and only leads to one of the runtime's?
 * Ask before runtimes_frames(), in the same order. */
bool runtimes_is_nothing(struct runtimes *r, size_t i);
/* Why the walk ended in a runtime's frame, or went on without reading some; PROFILE_N_MARKERS:
 * neither. */
enum profile_marker runtimes_marker(const struct runtimes *r);
