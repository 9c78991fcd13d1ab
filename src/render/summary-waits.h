/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the summary of a capture says of threads that waited: waits.h as lines and tables. */
struct summary_page;

/* The states of all threads that switched: the parts add up to their time. Nothing if none did. */
void summary_put_states(const struct summary_page *pg);
/* Of a page of off-CPU time: what threads waited for, the most first. */
void summary_put_reasons(const struct summary_page *pg);
/* The locks that were waited for most; nothing without any. 0 or -ENOMEM. */
int summary_put_locks(const struct summary_page *pg);
/* Of a page of wall time: the threads that ran most. 0 or -ENOMEM. */
int summary_put_threads(const struct summary_page *pg);
