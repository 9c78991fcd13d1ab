/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The threads of processes and of their descendants, by /proc. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists n_pids processes and the descendants that /proc knows (CONFIG_PROC_CHILDREN), in the same
 * way. */
size_t tasks_list_processes(const pid_t *pids, size_t n_pids, pid_t *processes, size_t max);
/*
 * Lists the threads of n_pids processes and of the descendants that /proc knows
 * (CONFIG_PROC_CHILDREN) in tasks, at most max of them. It does not find descendants whose parent
 * ends meanwhile. Returns how many it listed; 0 also without memory.
 */
size_t tasks_list(const pid_t *pids, size_t n_pids, pid_t *tasks, size_t max);
/* Lists the threads of all processes in the same way. */
size_t tasks_list_host(pid_t *tasks, size_t max);
/*
 * State of a process, or a thread, as proc(5) names it: R, S, D, Z ...; 0: it is not there.
 * *ret_threads: how many threads the process has.
 */
char tasks_state(pid_t pid, int *ret_threads);
/* Has a process, or a thread, ended? Also if its parent has not waited for it yet. */
bool tasks_has_ended(pid_t pid, bool is_thread);
