/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring is mapped once. Mapping its data twice in a row, so that no record wraps, stopped
 * working with Linux 6.17; instead the merge copies a record that wraps.
 *
 * Reader and kernel share two words of the control page: the kernel moves data_head after it has
 * written, we move data_tail after we have read (perf_event_open(2), "MMAP layout").
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/sample/sample.h"

#define RING_MIN_BYTES UINT64_C(65536)
#define RING_MAX_BYTES (UINT64_C(1) << 30)

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t round_down_power_of_two(uint64_t n)
{
	while (n & (n - 1))
		n &= n - 1;
	return n;
}

int ring_map(struct ring *r, int fd, uint64_t *bytes, bool may_shrink)
{
	uint64_t page = page_bytes(), size = round_down_power_of_two(*bytes);
	uint64_t least = RING_MIN_BYTES > page ? RING_MIN_BYTES : page, offset;
	void *p;

	if (may_shrink && size < least)
		size = least;
	if (size < page || size > RING_MAX_BYTES || (!may_shrink && size != *bytes))
		return -EINVAL;
	for (;;) {
		p = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			break;
		/* EPERM: the locked-memory quota of this user, shared with its other perf users. */
		if ((errno != EPERM && errno != ENOMEM) || !may_shrink || size / 2 < least)
			return -errno;
		size /= 2;
	}
	*r = (struct ring){.fd = fd, .page = p, .data_bytes = size};
	/* Before 4.1 the page does not say where the data are: they follow it. */
	offset = r->page->data_offset ? r->page->data_offset : page;
	if (offset != page) {
		(void)munmap(p, page + size);
		*r = (struct ring){.fd = -1};
		return -EPROTO;
	}
	r->data = (uint8_t *)p + offset;
	/* Not 0: an earlier reader may have died with unread records. */
	r->tail = __atomic_load_n(&r->page->data_tail, __ATOMIC_RELAXED);
	*bytes = size;
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (r->page)
		(void)munmap(r->page, page_bytes() + r->data_bytes);
	*r = (struct ring){.fd = -1};
}
