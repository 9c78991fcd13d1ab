/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which C library a process has, and what it takes to find its threads there. */
#include <stdio.h>

#include "runtimes/memory.h"

struct host_process;

/* The bytes of glibc's struct of a thread; 0: it is another library, or a static program, or cannot
 * be read. memory: the process's. */
uint32_t c_library_glibc_bytes(const struct host_process *p, struct memory *memory);
/* Where glibc's threads have the number of their CPU (thread-variable.h); 0: as above. */
int32_t c_library_glibc_cpu(const struct host_process *p, struct memory *memory);

/* The struct of a thread of musl, the first one of the process if it still runs (runtimes/musl.h);
 * 0: it is another library, or is not found. maps: the text of /proc/PID/maps; memory: the
 * process's, its budget is not used. */
uint64_t c_library_musl_thread(const struct host_process *p, FILE *maps,
			       const struct memory *memory);
