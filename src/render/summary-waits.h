/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Threads that waited in the summary of a capture: prints waits.h as lines and tables. */
struct summary_page;

/* Prints the time of all threads that are known, by state; nothing without any. */
void summary_put_states(const struct summary_page *pg);
/* Prints the blocked time of programs that tell their spans, by what is known of their spans;
 * nothing without any. */
void summary_put_blocked_spans(const struct summary_page *pg);
/* For a page of off-CPU time: prints what threads waited for, the most time first. */
void summary_put_reasons(const struct summary_page *pg);
/* Prints the locks that threads waited for most; nothing without any. 0 or -ENOMEM. */
int summary_put_locks(const struct summary_page *pg);
/* For a page of wall time: prints the threads that ran most. 0 or -ENOMEM. */
int summary_put_threads(const struct summary_page *pg);
