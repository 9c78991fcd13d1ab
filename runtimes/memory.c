/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtimes/memory.h"

enum { PAGE = 4096, N_PAGES = 64, TEXT_STEP = 64 };

struct memory_pages {
	struct memory *below;
	struct memory memory;
	uint64_t at[N_PAGES]; /* + 1; 0: nothing */
	uint8_t bytes[N_PAGES][PAGE];
};

bool memory_read(struct memory *m, uint64_t address, void *ret, size_t n)
{
	if (m->reads_left > 0 && n <= m->bytes_left && address + n >= address) {
		m->reads_left--;
		m->bytes_left -= n;
		if (m->read(m->ctx, address, ret, n))
			return true;
	}
	memset(ret, 0, n);
	return false;
}

bool memory_text(struct memory *m, uint64_t address, char *ret, size_t size)
{
	size_t n = 0;

	while (n + 1 < size) {
		/* Never beyond a page that it may be the last of. */
		size_t step = TEXT_STEP - (address + n) % TEXT_STEP;

		if (step > size - 1 - n)
			step = size - 1 - n;
		if (!memory_read(m, address + n, ret + n, step))
			return false;
		if (memchr(ret + n, 0, step))
			return true;
		n += step;
	}
	ret[n] = '\0';
	return true;
}

static const uint8_t *find_page(struct memory_pages *p, uint64_t address)
{
	uint64_t page = address / PAGE;
	size_t i = page % N_PAGES;

	if (p->at[i] != page + 1) {
		p->at[i] = 0;
		if (!memory_read(p->below, page * PAGE, p->bytes[i], PAGE))
			return NULL;
		p->at[i] = page + 1;
	}
	return p->bytes[i];
}

static bool read_pages(void *ctx, uint64_t address, void *ret, size_t n)
{
	uint8_t *to = ret;

	while (n > 0) {
		const uint8_t *page = find_page(ctx, address);
		size_t at = address % PAGE, step = PAGE - at < n ? PAGE - at : n;

		if (!page)
			return false;
		memcpy(to, page + at, step);
		to += step;
		address += step;
		n -= step;
	}
	return true;
}

struct memory_pages *memory_pages_new(struct memory *m)
{
	struct memory_pages *p = calloc(1, sizeof(*p));

	if (p) {
		p->below = m;
		p->memory = (struct memory){read_pages, p, UINT32_MAX, UINT64_MAX};
	}
	return p;
}

struct memory *memory_of_pages(struct memory_pages *p)
{
	return &p->memory;
}
