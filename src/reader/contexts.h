/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contexts that the threads of a process publish (OTEP 4947), by few reads of its memory. */
#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"

struct contexts;

/* Of a process whose threads have that variable. NULL: no memory. */
struct contexts *contexts_new(const struct thread_variable *variable);
struct contexts *contexts_free(struct contexts *c);

struct context_sample {
	uint32_t number; /* of the thread, in its own pid namespace */
	uint32_t cpu;	 /* that it was sampled on: the caller keeps it from everybody else */
	uint64_t robust_list;
	uint64_t now_ns;
};
/*
 * The context of the thread, which is taken to stand still: its bytes (thread-context.h). 0: it has
 * none, or it did not stand still. sampled: the memory, parts of it as they were at the sample;
 * now: all of it as it is.
 */
uint32_t contexts_read(struct contexts *c, struct memory *sampled, struct memory *now,
		       const struct context_sample *s, uint8_t ret[THREAD_CONTEXT_MAX_BYTES]);
