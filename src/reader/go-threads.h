/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runtime's structs of the threads of a Go program, as far as samples show them. */
#include "runtimes/go.h"
#include "src/process/frame-record.h"

struct go_threads;

/* cycle: the address of the counter of its garbage collector's cycles; 0: not known. NULL: no
 * memory; free(). */
struct go_threads *go_threads_new(const struct go_layout *layout, uint64_t cycle);

struct go_sample {
	uint32_t number;    /* of the thread, in its own pid namespace */
	uint32_t cpu;	    /* where it was sampled; the caller keeps other threads off this CPU */
	int stat;	    /* thread-stat.h */
	uint64_t goroutine; /* the value of its register for the goroutine; untrusted */
	/* For programs with glibc; 0: unknown. */
	uint64_t robust_list;
	uint32_t glibc_bytes; /* of its struct of a thread */
};
/*
 * Reads the labels of the goroutine that a thread runs: *ret_n bytes of them to ret (go.h), 0
 * unless FRAME_RECORD_SPAN_READ. m: the memory, with parts as they were at the sample.
 */
enum frame_record_span go_threads_read(struct go_threads *t, struct memory *m,
				       const struct go_sample *s, uint8_t ret[GO_LABELS_MAX_BYTES],
				       uint32_t *ret_n);
