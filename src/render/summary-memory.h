/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The memory of processes in the summary of a capture. */
struct summary_page;

/* Prints how much memory the largest processes had first, last and at most, if it was measured; and
 * what the numbers of memory in use leave out. 0 or -ENOMEM. */
int summary_put_memory(const struct summary_page *pg);
