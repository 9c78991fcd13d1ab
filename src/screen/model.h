/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The data of a live view: the functions in the intervals of a sliding window, by process, and
 * their callers. An interval counts completely until its end is older than the window.
 */
#include <stdbool.h>
#include <stdint.h>

#include "util/array.h"
#include "util/hash.h"
#include "util/strtab.h"

#define TOP_MAX_INTERVALS 64
#define TOP_MAX_ROWS	  (1u << 16) /* in an interval, and in the sum */
#define TOP_MAX_NODES	  (1u << 17) /* likewise */
#define TOP_MAX_STRINGS	  (8u << 20) /* bytes, likewise */

/* Where a function's code is. */
enum top_code {
	TOP_CODE_OTHER,
	TOP_CODE_FILE,	   /* in a mapped file */
	TOP_CODE_RUNTIME,  /* a function of Python, Java ... */
	TOP_CODE_COMPILED, /* compiled at run time, in no file */
	TOP_CODE_N
};

struct top_row {
	strid function, module, comm, owner; /* owner: container, pod or unit; "" none */
	uint32_t pid;
	uint32_t mark; /* the caller's: 0 in a new row */
	enum top_code code;
	/* In the table's unit; total counts a recursive function once a stack. */
	uint64_t self, total;
	/* Of rows that show a tree: */
	uint64_t path; /* identifies its node, in other sums, too */
	uint32_t depth;
	enum top_fold { TOP_LEAF, TOP_CLOSED, TOP_OPEN } fold;
};

#define TOP_NO_NODE UINT32_MAX

/* A function at its place in the call tree. The outermost node is the process: a row without
 * function.
 */
struct top_node {
	uint32_t parent;      /* node, smaller than this one; TOP_NO_NODE: a process */
	uint32_t row;	      /* of the same table */
	uint64_t self, total; /* as those of rows */
};

/* What identifies a row, as texts. */
struct top_key {
	const char *function, *module, *comm, *owner;
	uint32_t pid;
	enum top_code code; /* does not distinguish rows */
};

/* What rows and nodes count: samples, or the sum of their values. */
enum top_unit {
	TOP_UNIT_SAMPLES,
	TOP_UNIT_NANOSECONDS,
	TOP_UNIT_BYTES,
	TOP_UNIT_OBJECTS, /* of memory */
	TOP_UNIT_N
};

#define TOP_MAX_WHOLE (UINT64_C(1) << 53)

struct top_counts {
	uint64_t n_samples, n_lost;
	uint64_t whole;			      /* of all samples, in the table's unit: 100% */
	uint64_t idle_ns;		      /* not in it: threads that waited for work */
	uint64_t n_user_stacks, n_incomplete; /* of these, the ones that do not reach their entry */
};

enum top_sort { TOP_SORT_SELF, TOP_SORT_TOTAL };

struct top_table {
	struct strtab strings;
	ARRAY(struct top_row) rows;
	struct hash_index index;
	ARRAY(struct top_node) nodes;
	struct hash_index node_index;
	struct top_counts counts;
	enum top_unit unit;
	/* What there is at end_ns, such as memory in use: the newest interval has all of it. */
	bool in_use;
	double variance; /* of whole, if that is an estimate, in squares of the unit; else 0 */
	/* The period of a sample: CPU time, or events; the other is 0. */
	uint64_t period_ns, period_events;
	uint64_t n_refused; /* additions that did not fit */
	uint64_t start_ns, end_ns;
};

struct top_model {
	struct top_table intervals[TOP_MAX_INTERVALS]; /* n from first on, oldest first */
	uint32_t first, n;
	struct top_table sum; /* of top_model_slide() */
};

void top_model_init(struct top_model *m);
void top_model_deinit(struct top_model *m);

/* A new, empty interval; with TOP_MAX_INTERVALS it replaces the oldest one. */
struct top_table *top_model_begin(struct top_model *m, uint64_t start_ns, uint64_t end_ns);
void top_table_init(struct top_table *t);
void top_table_deinit(struct top_table *t);
void top_table_clear(struct top_table *t); /* keeps the memory */
/* Adds to the row of the key. 0, or -ENOSPC: full, counted in n_refused. */
int top_table_add(struct top_table *t, const struct top_key *key, uint64_t self, uint64_t total);
/*
 * The row with the ids and pid of key, added if needed, valid until the next one; NULL: full,
 * counted.
 */
struct top_row *top_table_row(struct top_table *t, const struct top_row *key);
/* The same for a row of another table. */
struct top_row *top_table_copy_row(struct top_table *t, const struct top_table *from, uint32_t row);
/* Counts, units and times; what did not fit adds up. */
void top_table_copy_facts(struct top_table *t, const struct top_table *from);
/* The node of a row below parent, added if needed; TOP_NO_NODE: full, counted. */
uint32_t top_table_node(struct top_table *t, uint32_t parent, uint32_t row);
/* Sorts rows: largest first, then by the other value, then by name. Only for a complete table
 * without nodes. */
void top_table_sort(struct top_table *t, enum top_sort sort);

/* Forgets the intervals that ended at or before now_ns - window_ns, and adds up the rest, or takes
 * the newest one of what is in use. The result is valid until the next call. */
const struct top_table *top_model_slide(struct top_model *m, uint64_t now_ns, uint64_t window_ns);
