/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files without a name, to pass from process to process: memfd_create(2), or on kernels without it
 * (before 3.17) a file in /dev/shm or /tmp that is unlinked at once.
 */
#include <stdbool.h>
#include <sys/types.h>

/* name: shown in /proc/PID/fd. A descriptor, or -errno. */
int memory_file_new(const char *name);
/* The device that these files are on, and memory that processes share without a file; 0: none. */
dev_t memory_file_device(void);
/* After this nobody can change the file, if the kernel has seals. 0 or -errno. */
int memory_file_seal(int fd);
/* False: a reader must copy what it reads twice. */
bool memory_file_is_sealed(int fd);
