/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How malloc() and free() return memory to the kernel. */
#include <stddef.h>

/*
 * From now on free() returns a large block to the kernel. Otherwise glibc raises its limit for
 * blocks on the heap to the size of the largest block that was ever freed, up to 32 MiB. The heap
 * shrinks only at its end: one table after an inflated section would keep megabytes for the life of
 * the process. Does nothing with other C libraries, which do not need it.
 */
void heap_return_large_blocks(void);

/* Sets how many free bytes the end of the heap may have before free() returns them: 1 MiB after the
 * call above. A process that rarely needs much memory sets less. */
void heap_set_spare(size_t bytes);

/* Returns all pages of the heap without a block. Takes a millisecond for thousands of free blocks;
 * the next allocations may take page faults. */
void heap_return_pages(void);
