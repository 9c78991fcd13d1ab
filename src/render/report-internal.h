/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of the report: what a frame and a thread are called by the keys chosen (report-keys.c),
 * and the trees of callers and callees (report-tree.c). report.c counts, and prints the table.
 */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/render/aggregate.h"
#include "src/render/render.h"
#include "src/render/table.h"
#include "util/hash.h"

#define REPORT_SEPARATOR '\t' /* of the values of several keys in one text */

struct report_entry {
	uint32_t owner, place; /* strids of values */
	int64_t self, total;
	double self_squares, total_squares; /* as aggregate_row's */
	uint64_t seen;			    /* number of the row that was counted last */
};

/* Functions of a frame, innermost first. */
struct report_places {
	uint32_t first, n; /* rows of places; n 0: not known yet */
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
	uint32_t *owners;		 /* by thread: strid + 1, 0: not known yet */
	int64_t total;			 /* of the sizes: what shares are of */
	double squares;
	bool by_owner, by_place, has_symbol;
	regex_t symbol;
	/* Trees of this entry alone; NULL: of what matches symbol. */
	const struct report_entry *only;
};

/* A share of all that is wanted. */
static inline struct table_estimate report_estimate(const struct report *r, int64_t value,
						    double squares)
{
	return table_estimate((struct weight){(double)value, squares},
			      (struct weight){(double)r->total, r->squares});
}

/* ---- Keys ---- */

/* Keys are of the owner (comm, container ...), the others of the place (module, symbol, line). */
bool report_key_is_owner(enum render_report_key key);
const char *report_key_title(enum render_report_key key);

/* The values of the owner's keys for a thread, as a strid; STRID_EMPTY where none was chosen. */
uint32_t report_owner(struct report *r, uint32_t thread);
/* Whether the options take that process and container. */
bool report_row_wanted(const struct report *r, const struct aggregate_row *row);
/* Calls fn for each function of the stack, leaf first, until it does not return 0; at: number from
 * there. What fn returned last, or -ENOMEM. */
int report_each_place(struct report *r, uint32_t stack,
		      int (*fn)(struct report *r, void *ctx, uint32_t place, uint32_t at),
		      void *ctx);
/* The value of the key symbol among those of a place; its length. */
size_t report_symbol_of(const struct report *r, uint32_t place, const char **ret);
/* Is it what trees are made of: the one entry's place, or a symbol that matches? */
bool report_place_matches(const struct report *r, uint32_t place);

/* ---- Trees ---- */

/* The trees asked for; what: of which functions. 0 or -ENOMEM. */
int report_print_trees(struct report *r, struct table *t, const char *what);
