/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files without a name, to be handed from process to process: memfd_create(2), and where the kernel
 * has none (before 3.17) a file in /dev/shm or /tmp that is unlinked at once.
 */
#include <stdbool.h>

/* name: what /proc/PID/fd shows. A descriptor, or -errno. */
int memory_file_new(const char *name);
/* Nobody can change it any more, where the kernel can see to that. 0 or -errno. */
int memory_file_seal(int fd);
/* False: a reader must copy what it looks at twice. */
bool memory_file_is_sealed(int fd);
