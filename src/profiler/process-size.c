/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "src/profiler/outside.h"
#include "src/profiler/process-size.h"

#define STATM_BYTES 128

/* "SIZE RESIDENT SHARED TEXT 0 DATA 0" in pages. A process without memory has 0 of all. */
static bool read_sizes(int fd, struct process_pages *ret)
{
	char text[STATM_BYTES], *at = text;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t sizes[6];

	if (n <= 0)
		return false;
	text[n] = '\0';
	for (int i = 0; i < 6; i++)
		sizes[i] = strtoull(at, &at, 10);
	*ret = (struct process_pages){.all = sizes[0], .data = sizes[5]};
	return sizes[0] > 0;
}

static bool are_same(const struct process_pages *a, const struct process_pages *b)
{
	return a->all == b->all && a->data == b->data;
}

static bool is_kept(const struct process_size *s, const struct process_pages *pages)
{
	for (uint32_t i = 0; i < PROCESS_SIZES && i < s->n_kept; i++) {
		if (are_same(&s->kept[i], pages))
			return true;
	}
	return false;
}

void process_size_keep(struct process_size *s, struct outside *o, uint32_t pid, uint64_t now_ns)
{
	struct process_pages pages;

	if (!s->open) {
		s->fd = outside_open_resident(o, pid);
		s->open = s->fd >= 0;
	}
	s->differs = !s->open || !read_sizes(s->fd, &pages);
	s->stood = false;
	if (s->differs)
		return;
	if (!is_kept(s, &pages)) {
		if (!are_same(&pages, &s->last))
			s->since_ns = now_ns;
		s->kept[s->n_kept++ % PROCESS_SIZES] = pages;
	}
	s->last = pages;
	s->read_ns = now_ns;
}

/* false: it has ended. */
static bool look(struct process_size *s, uint64_t now_ns, uint64_t min_ns)
{
	struct process_pages pages;

	if (!read_sizes(s->fd, &pages))
		return false;
	if (!are_same(&pages, &s->last) && !is_kept(s, &pages)) {
		s->stood |= s->read_ns - s->since_ns >= min_ns;
		s->since_ns = now_ns;
	}
	s->last = pages;
	s->read_ns = now_ns;
	return true;
}

bool process_size_is_same(struct process_size *s, uint64_t now_ns, uint64_t min_ns)
{
	if (!s->open)
		return false;
	if (!s->differs || now_ns - s->read_ns >= min_ns)
		s->differs |= !look(s, now_ns, min_ns) || !is_kept(s, &s->last);
	return !s->differs;
}

void process_size_close(struct process_size *s)
{
	if (s->open)
		(void)close(s->fd);
	s->open = false;
}
