/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to the report: the values of the chosen keys for a frame and a thread (report-keys.c),
 * and the trees of callers and callees (report-tree.c). report.c counts, and prints the table.
 */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/render/aggregate.h"
#include "src/render/render.h"
#include "src/render/table.h"
#include "util/hash.h"

#define REPORT_SEPARATOR	'\t' /* between the values of several keys in one text */
#define REPORT_CONTAINER_DIGITS 12   /* of an id, as shown */

struct report_entry {
	uint32_t owner, place; /* strids of values */
	int64_t self, total;
	double self_squares, total_squares; /* as in aggregate_row */
	uint64_t seen;			    /* number of the row counted last */
};

/* Functions of a frame, innermost first. */
struct report_places {
	uint32_t first, n; /* rows of places; n 0: not found yet */
};

struct report_node {
	uint32_t place, parent, first_child, next;
	int64_t value;
	double squares;
};

struct report {
	const struct profile *p;
	const struct render_report_options *o;
	struct aggregate a;
	struct strtab texts;
	struct report_places *frames;
	ARRAY(uint32_t) places;
	ARRAY(struct report_entry) entries;
	struct hash_index index;
	ARRAY(struct report_node) nodes; /* the first is the root */
	struct hash_index node_index;	 /* by parent and place */
	uint32_t *owners;		 /* by thread: strid + 1, 0: not found yet */
	int64_t total;			 /* of all values: 100% of the shares */
	double squares;
	bool by_owner, by_place, has_symbol;
	regex_t symbol;
	/* Only trees of this entry; NULL: of the functions that match symbol. */
	const struct report_entry *only;
};

/* The share of a value among all wanted samples. */
static inline struct table_estimate report_estimate(const struct report *r, int64_t value,
						    double squares)
{
	return table_estimate((struct weight){(double)value, squares},
			      (struct weight){(double)r->total, r->squares});
}

/* ---- Keys ---- */

/* Is this a key of the owner (comm, container ...), not of the place (module, symbol, line)? */
bool report_key_is_owner(enum render_report_key key);
const char *report_key_title(enum render_report_key key);

/* The values of the owner's keys for a thread, as a strid; STRID_EMPTY: none was chosen. */
uint32_t report_owner(struct report *r, uint32_t thread);
/* Do the options select the samples of that thread's row? (choose.c) */
bool report_thread_wanted(const struct profile *p, const struct render_report_options *o,
			  uint32_t thread);
static inline bool report_row_wanted(const struct report *r, const struct aggregate_row *row)
{
	return report_thread_wanted(r->p, r->o, row->thread);
}
/* Calls fn for each function of the stack, leaf first, until it returns another value than 0. at:
 * the function's position from the leaf. Returns what fn returned last, or -ENOMEM. */
int report_each_place(struct report *r, uint32_t stack,
		      int (*fn)(struct report *r, void *ctx, uint32_t place, uint32_t at),
		      void *ctx);
/* The value of the key symbol of a place; returns its length. */
size_t report_symbol_of(const struct report *r, uint32_t place, const char **ret);
/* Do trees begin at this place: that of the entry, or one with a matching symbol? */
bool report_place_matches(const struct report *r, uint32_t place);

/* ---- Trees ---- */

/* Prints the wanted trees; what: names their functions. 0 or -ENOMEM. */
int report_print_trees(struct report *r, struct table *t, const char *what);
