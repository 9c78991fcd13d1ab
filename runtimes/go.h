/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels of the goroutine that a thread runs (runtime/pprof.Do), as Go's own profiler would
 * give them to a sample: those of the thread's current goroutine, whatever stack it is on.
 *
 * The runtime's struct of a thread (m) has the thread's number and its current goroutine (g), which
 * has the labels and its own number. Structs of threads stay where they are: one that was found
 * once, through a register or a variable with a goroutine of it, is known by the number in it.
 */
#include "runtimes/memory.h"

/* Offsets in the runtime's structs. */
struct go_layout {
	uint16_t number, current;   /* of m */
	uint16_t labels, goroutine; /* of g */
	bool listed;		    /* labels are a list of pairs, not a map */
};

/* The number of a version such as "go1.24.3": 24; 0: its layout is not known. */
uint32_t go_version_of(const char *version);
/* false: there is no such version. */
bool go_layout_find(uint32_t version, struct go_layout *ret);

/* The struct of the thread of that number, from what may be the address of one of its goroutines;
 * 0: it is none. */
uint64_t go_thread_of(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		      uint32_t number);

/* The number of the goroutine (8 bytes, native), then for each label the bytes of its key and of
 * its value, and both. */
enum { GO_LABELS_HEAD_BYTES = 8, GO_LABELS_MAX_BYTES = 640, GO_LABELS_MAX_READS = 48 };

struct go_goroutine {
	uint64_t address, number;
	uint64_t labels; /* where they are; 0: none */
};
enum go_answer {
	GO_NONE, /* it runs no goroutine, or one of the runtime's own */
	GO_FOUND,
	GO_OTHER_THREAD, /* the struct is not that thread's (any more) */
};
/* What a goroutine is if the thread with that struct runs it; false: it does not, or it is the
 * runtime's own. */
bool go_goroutine_at(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		     uint64_t thread, struct go_goroutine *ret);
/* The thread's current goroutine. */
enum go_answer go_goroutine_of(struct memory *m, const struct go_layout *l, uint64_t thread,
			       uint32_t number, struct go_goroutine *ret);
/* Its labels: bytes of ret, 0: none. Those that do not fit, or are too long, are left out. */
uint32_t go_labels_read(struct memory *m, const struct go_layout *l,
			const struct go_goroutine *goroutine, uint8_t ret[GO_LABELS_MAX_BYTES]);
/* Whether it has these labels still: then it stood still while they were read. */
bool go_labels_are(struct memory *m, const struct go_layout *l,
		   const struct go_goroutine *goroutine);

struct go_label {
	const uint8_t *key, *value; /* borrowed */
	uint8_t n_key, n_value;
};
/* The next label of n bytes from *at on, 0 at first; false: there is none, or it is not whole. */
bool go_label_next(const uint8_t *bytes, uint32_t n, uint32_t *at, struct go_label *ret);
uint64_t go_labels_goroutine(const uint8_t *bytes);
