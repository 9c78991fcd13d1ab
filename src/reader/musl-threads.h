/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The thread pointers of a process with musl, as far as samples have asked for them. */
#include "runtimes/musl.h"

struct musl_threads;

enum { MUSL_THREADS_MAX_READS = 1024, MUSL_THREADS_MAX_BYTES = 1 << 16 };

/* first: the struct of a thread that is there as long as the process. NULL: no memory; free(). */
struct musl_threads *musl_threads_new(uint64_t first);
/* Of the thread of that number in its own pid namespace; 0: it is not found. now_ns: of a steady
 * clock. A search takes a read for each thread: those above. */
uint64_t musl_threads_pointer(struct musl_threads *t, struct memory *m, uint32_t number,
			      uint64_t now_ns);
