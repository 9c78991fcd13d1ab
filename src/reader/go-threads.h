/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The runtime's structs of the threads of a Go program, as far as samples have told them. */
#include "runtimes/go.h"

struct go_threads;

/* NULL: no memory; free(). */
struct go_threads *go_threads_new(const struct go_layout *layout);

struct go_sample {
	uint32_t number;    /* of the thread, in its own pid namespace */
	uint64_t goroutine; /* what its register of goroutines has; it may be anything */
	/* For programs with glibc; 0: not known. */
	uint64_t robust_list;
	uint32_t glibc_bytes; /* of its struct of a thread */
};
/*
 * The labels of the goroutine that the thread runs: bytes of ret (go.h); 0: it has none, or did not
 * stand still. sampled: the memory, parts of it as they were at the sample; now: as it is.
 */
uint32_t go_threads_read(struct go_threads *t, struct memory *sampled, struct memory *now,
			 const struct go_sample *s, uint8_t ret[GO_LABELS_MAX_BYTES]);
