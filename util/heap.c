/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "util/heap.h"

/* A mapping costs a page fault for each 4 KiB, as does what is new on the heap. */
#define LARGE_BYTES (256 << 10)
#define SPARE_BYTES (1 << 20) /* at the end of the heap */

void heap_return_large_blocks(void)
{
	/* Each by itself ends the guessing of both. */
#ifdef M_MMAP_THRESHOLD
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
	heap_set_spare(SPARE_BYTES);
}

void heap_set_spare(size_t bytes)
{
#ifdef M_TRIM_THRESHOLD
	(void)mallopt(M_TRIM_THRESHOLD, (int)bytes);
#endif
}

void heap_return_pages(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(SPARE_BYTES);
#endif
}
