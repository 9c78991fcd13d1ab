/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A view of the sliding sum: by function, process or container, or as a tree; filtered and sorted.
 */
#include <regex.h>
#include <stdbool.h>

#include "src/screen/model.h"

enum top_view_kind {
	TOP_VIEW_FUNCTIONS,
	TOP_VIEW_PROCESSES,
	TOP_VIEW_CONTAINERS,
	TOP_VIEW_TREE,
	TOP_VIEW_N
};
const char *top_view_name(enum top_view_kind kind); /* "functions" ... */

#define TOP_FILTER_MAX 80
#define TOP_MAX_OPEN   4096 /* nodes of the tree that are open */

struct top_view {
	enum top_view_kind kind;
	enum top_sort sort;
	bool confidence; /* with the 95% intervals of the shares */
	bool no_native;	 /* native functions of interpreters are left out */
	/* Only this process or owner, after a jump. */
	bool one_process, one_owner;
	uint32_t pid;
	char owner[256];
	/* Extended regular expression on the texts of a row; "": all rows. */
	char filter[TOP_FILTER_MAX];
	regex_t regex;
	/* Tree: the paths of open nodes, sorted. */
	ARRAY(uint64_t) open;
	/* all nodes with at least a hundredth of the samples are open, and no others */
	bool all_open;
};

/* Sets a new filter. 0, or -EINVAL: nothing changes, and error says why. */
int top_view_set_filter(struct top_view *v, const char *filter, char *error, size_t size);
void top_view_clear_filter(struct top_view *v);
void top_view_init(struct top_view *v);
void top_view_deinit(struct top_view *v);

/* Fills out (emptied first) with the rows of sum for the view v; a row has only the texts of its
 * kind. Counts and times are those of the whole sum. Rows of a tree are in the order of the
 * screen. */
void top_view_make(const struct top_view *v, const struct top_table *sum, struct top_table *out);

/* Does v select this row, and does its text match the filter? */
bool top_view_wants(const struct top_view *v, const struct top_table *sum, const struct top_row *r);
bool top_view_matches(const struct top_view *v, const struct top_key *k);
