/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A table between processes: sealed memory, read field by field within bounds. */
#include "src/screen/model.h"

/* A descriptor of the table in sealed memory, or -errno. */
int top_table_write(const struct top_table *t);
/* Adds rows, counts and times of the table behind fd to t (empty before): texts are made clean
 * again, since they are for a terminal. 0; -EBADMSG: not one; -EFBIG; -errno. */
int top_table_read(struct top_table *t, int fd);
