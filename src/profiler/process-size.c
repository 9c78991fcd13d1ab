/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "src/profiler/outside.h"
#include "src/profiler/process-size.h"

#define STATM_BYTES 128

/* "SIZE RESIDENT SHARED TEXT 0 DATA 0" in pages. A process without memory has 0 of all. */
static bool read_sizes(int fd, uint64_t *ret_all, uint64_t *ret_data)
{
	char text[STATM_BYTES], *at = text;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t sizes[6];

	if (n <= 0)
		return false;
	text[n] = '\0';
	for (int i = 0; i < 6; i++)
		sizes[i] = strtoull(at, &at, 10);
	*ret_all = sizes[0];
	*ret_data = sizes[5];
	return sizes[0] > 0;
}

void process_size_keep(struct process_size *s, struct outside *o, uint32_t pid)
{
	if (!s->open) {
		s->fd = outside_open_resident(o, pid);
		s->open = s->fd >= 0;
	}
	s->differs = !s->open || !read_sizes(s->fd, &s->all_pages, &s->data_pages);
}

bool process_size_is_same(struct process_size *s)
{
	uint64_t all, data;

	if (s->open && !s->differs)
		s->differs = !read_sizes(s->fd, &all, &data) || all != s->all_pages ||
			     data != s->data_pages;
	return s->open && !s->differs;
}

void process_size_close(struct process_size *s)
{
	if (s->open)
		(void)close(s->fd);
	s->open = false;
}
