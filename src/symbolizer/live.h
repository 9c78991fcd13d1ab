/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of a window for the live view: a row for each function and process, and a node for
 * each function by its callers. */
#include "src/profile/profile.h"
#include "src/screen/model.h"

/* Fills t (emptied first) from the named samples of p. 0 or -ENOMEM; what does not fit is counted
 * in t->n_refused. */
int live_table(struct top_table *t, const struct profile *p);
