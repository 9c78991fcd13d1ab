/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels (runtime/pprof.Do) of the goroutine that a thread runs, as Go's own profiler would
 * give them to a sample: those of the thread's current goroutine, whatever stack it is on.
 *
 * The runtime's struct of a thread (m) has the thread's number and its current goroutine (g), which
 * has the labels and a number of its own. We find an m through a register or variable that holds
 * one of its goroutines. The struct never moves, so the number in it proves it later.
 */
#include "runtimes/memory.h"

/* Offsets in the runtime's structs. */
struct go_layout {
	uint16_t number, current;   /* of m */
	uint16_t labels, goroutine; /* of g */
	bool listed;		    /* labels are a list of pairs, not a map */
};

/* The minor number of a version: 24 for "go1.24.3"; 0: we do not know its layout. */
uint32_t go_version_of(const char *version);
/* The layout of a minor version; false: unknown. */
bool go_layout_find(uint32_t version, struct go_layout *ret);

/* The struct (m) of the thread with that number, from the possible address of one of its
 * goroutines. 0: it is not that thread's goroutine. */
uint64_t go_thread_of(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		      uint32_t number);

/* The form of labels as bytes: the goroutine's number (8 bytes, native order), how many of its
 * labels are left out (a byte; 255: or more), then for each of the others the lengths of key and
 * value (a byte each), and both texts. */
enum { GO_LABELS_HEAD_BYTES = 9, GO_LABELS_MAX_BYTES = 640, GO_LABELS_MAX_READS = 48 };
/* Values in so many bytes are read at once. */
enum { GO_TEXTS_BYTES = 96 };

struct go_goroutine {
	uint64_t address, number;
	uint64_t labels; /* their address; 0: none */
};
enum go_answer {
	GO_NONE, /* the thread runs no goroutine, or one of the runtime's own */
	GO_FOUND,
	GO_OTHER_THREAD, /* the struct does not belong to that thread (any more) */
};
/* Reads a goroutine if the thread with that struct runs it; false: it does not, or it is one of the
 * runtime's own. */
bool go_goroutine_at(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		     uint64_t thread, struct go_goroutine *ret);
/* Reads the current goroutine of the thread with that struct and number. */
enum go_answer go_goroutine_of(struct memory *m, const struct go_layout *l, uint64_t thread,
			       uint32_t number, struct go_goroutine *ret);
/* Reads the labels of a goroutine that has some. Returns the number of bytes in ret, 0: they cannot
 * be read. Leaves out labels that do not fit or are too long. */
uint32_t go_labels_read(struct memory *m, const struct go_layout *l,
			const struct go_goroutine *goroutine, uint8_t ret[GO_LABELS_MAX_BYTES]);
struct go_label {
	const uint8_t *key, *value; /* borrowed */
	uint8_t n_key, n_value;
};
/* The next label in n bytes. *at: 0 at first, and then where it continues. false: no further one,
 * or it is cut. */
bool go_label_next(const uint8_t *bytes, uint32_t n, uint32_t *at, struct go_label *ret);
/* The number of the goroutine in such bytes, and of the labels that are left out. */
uint64_t go_labels_goroutine(const uint8_t *bytes);
uint32_t go_labels_left_out(const uint8_t *bytes);
