/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which C library a process has, and how to find its threads in it. */
#include <stdio.h>

#include "runtimes/memory.h"

struct host_process;

/* Has it mapped glibc? Then threads that the library began are glibc's. */
bool c_library_is_glibc(const struct host_process *p);
/* The size of glibc's struct pthread in bytes; 0: another library, a static program, or it cannot
 * be read. memory: the process's. */
uint32_t c_library_glibc_bytes(const struct host_process *p, struct memory *memory);
/* Where glibc's threads have the number of their CPU (thread-variable.h); 0: as above. */
int32_t c_library_glibc_cpu(const struct host_process *p, struct memory *memory);

/* The address of musl's struct of a thread, of the main thread if it still runs (runtimes/musl.h);
 * 0: another library, or not found. maps: the text of /proc/PID/maps; memory: the process's; this
 * uses none of its budget. */
uint64_t c_library_musl_thread(const struct host_process *p, FILE *maps,
			       const struct memory *memory);
