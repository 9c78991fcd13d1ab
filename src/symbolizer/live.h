/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the symbolizer tells a live view of a window: a row a function and process, a node a
 * function where it was called from. */
#include "src/profile/profile.h"
#include "src/screen/model.h"

/* Fills t (emptied first) from the named samples of p. 0 or -ENOMEM; what does not fit is counted
 * in t->n_refused. */
int live_table(struct top_table *t, const struct profile *p);
