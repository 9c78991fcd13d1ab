/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The call tree of the sliding sum as rows, of which a view says which are open. */
#include "src/screen/view.h"

/* Adds to out (empty) the processes that v wants, and below what is open its callees: largest total
 * first. With a filter only what leads to a match or is below one, open down to it. */
void top_tree_make(const struct top_view *v, const struct top_table *sum, struct top_table *out);

/* Opens or closes what is named by path. */
void top_tree_set_open(struct top_view *v, uint64_t path, bool open);
/* Opens what is named by path, and what has most of its samples below it, to where they part. */
void top_tree_open_chain(struct top_view *v, const struct top_table *sum, uint64_t path);
