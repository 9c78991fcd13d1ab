/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the summary of a capture says of processes' memory. */
struct summary_page;

/* What the largest had in memory first, last and at most; nothing if nobody looked. And of what is
 * in use, what is not known. 0 or -ENOMEM. */
int summary_put_memory(const struct summary_page *pg);
