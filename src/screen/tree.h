/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The call tree of the sliding sum as rows; a view says which nodes are open. */
#include "src/screen/view.h"

/* Adds to out (empty) the processes that v selects, and the callees of open nodes, largest total
 * first. With a filter only nodes that lead to a match or are below one, opened down to it. */
void top_tree_make(const struct top_view *v, const struct top_table *sum, struct top_table *out);

/* Opens or closes the node with that path. */
void top_tree_set_open(struct top_view *v, uint64_t path, bool open);
/* Opens the node with that path, and below it each child with most of its parent's samples. */
void top_tree_open_chain(struct top_view *v, const struct top_table *sum, uint64_t path);
