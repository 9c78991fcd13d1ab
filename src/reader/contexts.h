/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contexts that the threads of a process publish (OTEP 4947), by few reads of its memory. */
#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"
#include "src/process/frame-record.h"

struct contexts;

/* For a process whose threads have that variable (copied). NULL: no memory. */
struct contexts *contexts_new(const struct thread_variable *variable);
struct contexts *contexts_free(struct contexts *c);

struct context_sample {
	uint32_t number; /* of the thread, in its own pid namespace */
	uint32_t cpu;	 /* where it was sampled; the caller keeps other threads off this CPU */
	uint64_t robust_list;
	int stat;	 /* thread-stat.h; of use if the variable's cpu is 0 */
	uint64_t now_ns; /* CLOCK_MONOTONIC */
};
/*
 * Reads the context of a thread, which should stand still: *ret_n bytes of it to ret
 * (thread-context.h), 0 unless FRAME_RECORD_SPAN_READ. sampled: the memory, with parts as they were
 * at the sample; now: the memory as it is.
 */
enum frame_record_span contexts_read(struct contexts *c, struct memory *sampled, struct memory *now,
				     const struct context_sample *s,
				     uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n);
