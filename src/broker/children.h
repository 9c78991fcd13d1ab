/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All children that the table of kinds allows, whether they run or not. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/broker/child.h"

struct children {
	struct child *items; /* by row, then by index */
	uint32_t n;
};

/* Makes peer_row.max children of each row; the rows must outlive them. The caller frees items. 0;
 * -E2BIG: more than max in all; -ENOMEM. */
int children_make(struct children *c, const struct peer_row *rows, size_t n_rows, uint32_t max);
/* Borrowed. NULL: the table has no such child. */
struct child *children_find(const struct children *c, struct peer_id who);
/* The child with this control or ask socket, or NULL. Borrowed. */
struct child *children_with_fd(const struct children *c, int fd);
/* Is a child of these kinds (PEER_BIT) there whose end must be awaited? */
bool children_any_there(const struct children *c, uint32_t kinds);
/* Gives a child and each running neighbour of it a socket to each other. */
void children_join(struct children *c, struct child *new);
