/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The threads of processes and of their descendants, by /proc.
 */
#include <stddef.h>
#include <sys/types.h>

/*
 * Lists the threads of n_pids processes and of the descendants that /proc knows
 * (CONFIG_PROC_CHILDREN), at most max of them, into tasks. Descendants whose parent has ended
 * meanwhile are not found. Returns how many there are; 0 without memory, too.
 */
size_t tasks_list(const pid_t *pids, size_t n_pids, pid_t *tasks, size_t max);
