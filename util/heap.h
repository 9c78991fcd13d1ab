/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How malloc() and free() deal with large blocks. */
#include <stddef.h>

/*
 * From here on a large block goes back to the kernel when it is freed. Without this glibc takes the
 * largest block that was ever freed, up to 32 MiB, for the size up to which blocks lie on its heap.
 * The heap shrinks only at its end: one table that stays behind a section that was inflated keeps
 * megabytes for the life of the process. Other C libraries need no telling.
 */
void heap_return_large_blocks(void);

/* How much may be free at the end of the heap before it is given back: 1 MiB after the call above.
 * Less for who needs much but rarely. */
void heap_set_spare(size_t bytes);

/* Gives back the pages of the heap that no block lies on, wherever they are. Takes a millisecond
 * for thousands of free blocks; what is allocated next may take page faults. */
void heap_return_pages(void);
