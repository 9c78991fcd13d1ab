/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The thread pointers of the sampled threads of a process with musl. */
#include "runtimes/musl.h"

struct musl_threads;

enum { MUSL_THREADS_MAX_READS = 1024, MUSL_THREADS_MAX_BYTES = 1 << 16 };

/* first: the struct of a thread that lives as long as the process. NULL: no memory. The caller
 * frees it by free(). */
struct musl_threads *musl_threads_new(uint64_t first);
/* The thread pointer of the thread with that number in its own pid namespace; 0: not found. now_ns:
 * of a steady clock. A search reads one struct for each thread, at most MUSL_THREADS_MAX_READS. */
uint64_t musl_threads_pointer(struct musl_threads *t, struct memory *m, uint32_t number,
			      uint64_t now_ns);
