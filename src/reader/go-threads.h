/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runtime's structs of the threads of a Go program, as far as samples show them. */
#include "runtimes/go.h"
#include "runtimes/thread-variable.h"
#include "src/process/frame-record.h"

struct go_threads;

/* cycle: the address of the counter of its garbage collector's cycles; 0: not known. library: of a
 * program that is linked with glibc, how to find the struct of a thread and its CPU (copied); all
 * 0: not known. NULL: no memory; free(). */
struct go_threads *go_threads_new(const struct go_layout *layout, uint64_t cycle,
				  const struct thread_variable *library);

struct go_sample {
	uint32_t number;    /* of the thread, in its own pid namespace */
	uint32_t cpu;	    /* where it was sampled; the caller keeps other threads off this CPU */
	int stat;	    /* thread-stat.h; of use if the library's cpu is 0 */
	uint64_t goroutine; /* the value of its register for the goroutine; untrusted */
	uint64_t robust_list; /* of a thread of glibc; 0: unknown */
};
/*
 * Reads the labels of the goroutine that a thread runs: *ret_n bytes of them to ret (go.h), 0
 * unless FRAME_RECORD_SPAN_READ. sampled: the memory, with parts as they were at the sample; now:
 * the memory as it is.
 */
enum frame_record_span go_threads_read(struct go_threads *t, struct memory *sampled,
				       struct memory *now, const struct go_sample *s,
				       uint8_t ret[GO_LABELS_MAX_BYTES], uint32_t *ret_n);
