/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A table between processes: sealed memory, read field by field within bounds. */
#include "src/screen/model.h"

/* A descriptor of the table in sealed memory, or -errno. */
int top_table_write(const struct top_table *t);
/* Adds rows, counts and times of the table in fd to t (empty before). Texts are cleaned again,
 * since they are for a terminal. 0; -EBADMSG: not a table; -EFBIG; -errno. */
int top_table_read(struct top_table *t, int fd);
