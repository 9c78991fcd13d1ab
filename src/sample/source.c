/* SPDX-License-Identifier: Apache-2.0 */
/* One ring as the merge sees it: where it stands, and what its next record is. */
#include <string.h>
#include <unistd.h>

#include "src/sample/source.h"

uint64_t source_load_head(const struct source *s)
{
	return __atomic_load_n(&s->ring.page->data_head, __ATOMIC_ACQUIRE);
}

void source_store_tail(struct source *s, uint64_t tail)
{
	s->ring.tail = tail;
	__atomic_store_n(&s->ring.page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Headers and times are 8 bytes at multiples of 8: they never wrap. */
static uint64_t ring_word(const struct ring *r, uint64_t at)
{
	uint64_t v;

	memcpy(&v, r->data + (at & (r->data_bytes - 1)), sizeof(v));
	return v;
}

const void *source_bytes(const struct source *s, void *wrapped)
{
	const struct ring *r = &s->ring;
	uint64_t at = r->tail;
	size_t n = s->next.size;
	uint64_t from = at & (r->data_bytes - 1), first = r->data_bytes - from;

	if (n <= first)
		return r->data + from;
	memcpy(wrapped, r->data + from, first);
	memcpy((uint8_t *)wrapped + first, r->data, n - first);
	return wrapped;
}

bool source_peek(const struct record_layout *layout, struct source *s, uint64_t tail)
{
	uint64_t left = s->head - tail, word;
	size_t at;

	if (!left)
		return false;
	word = ring_word(&s->ring, tail);
	memcpy(&s->next, &word, sizeof(s->next));
	if (left > s->ring.data_bytes || s->next.size < sizeof(s->next) || s->next.size > left ||
	    s->next.size % 8) {
		s->next.size = 0;
		return true;
	}
	/* A record without a time of its own keeps its place behind the one before it. */
	at = record_time_offset(layout, s->next.type, s->next.size);
	if (at)
		s->next_time = ring_word(&s->ring, tail + at);
	return true;
}

uint64_t source_youngest(const struct record_layout *layout, const struct source *s)
{
	struct source walk = *s;
	uint64_t youngest = 0, tail = s->ring.tail;

	while (source_peek(layout, &walk, tail) && walk.next.size) {
		if (walk.next_time > youngest)
			youngest = walk.next_time;
		tail += walk.next.size;
	}
	return youngest;
}

bool source_read_lost(const struct source *s, uint64_t *ret)
{
	struct {
		uint64_t value, enabled_ns, lost;
	} counts;

	if (s->event_fd < 0 ||
	    read(s->event_fd, &counts, sizeof(counts)) != (ssize_t)sizeof(counts))
		return false;
	*ret = counts.lost + s->lost_earlier;
	return true;
}

void source_replace_event(struct source *s, int event_fd)
{
	uint64_t before;

	(void)source_read_lost(s, &s->lost_earlier);
	s->event_fd = event_fd;
	/* Not new with a profiler that was started again: the one before has told of it. */
	if (source_read_lost(s, &before))
		s->lost_base += before - s->lost_earlier;
}

uint64_t source_lost_news(struct source *s)
{
	uint64_t known = s->lost_recorded > s->lost_read ? s->lost_recorded : s->lost_read;
	uint64_t news = known - s->lost_told;

	s->lost_told = known;
	return news;
}
