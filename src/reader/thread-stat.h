/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The CPU of a thread, as the kernel says in /proc/PID/task/TID/stat. */
#include <stdint.h>

#define THREAD_STAT_NO_CPU UINT32_MAX
/* The CPU on which it runs, or whose queue it waits in; fd: of that file, which stays the caller's.
 * THREAD_STAT_NO_CPU: the thread has ended, or fd is negative. */
uint32_t thread_stat_cpu(int fd);
