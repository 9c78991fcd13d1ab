/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files without a name, to pass from process to process: memfd_create(2), or on kernels without it
 * (before 3.17) a file in /dev/shm or /tmp that is unlinked at once.
 */
#include <stdbool.h>
#include <sys/types.h>

/* Returns a descriptor, which the caller owns, or -errno. name: shown in /proc/PID/fd. */
int memory_file_new(const char *name);
/* The device of these files, and of memory that processes share without a file; 0: unknown. */
dev_t memory_file_device(void);
/* Makes the file unchangeable, if the kernel has seals (3.17). 0 or -errno. */
int memory_file_seal(int fd);
/* Is the file unchangeable? If not, a reader must copy the bytes that it reads twice. */
bool memory_file_is_sealed(int fd);
