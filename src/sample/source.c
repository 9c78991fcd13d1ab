/* SPDX-License-Identifier: Apache-2.0 */
/* One ring in the merge: its position and its next record. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/sample/source.h"

uint64_t source_load_head(const struct source *s)
{
	return __atomic_load_n(&s->ring.page->data_head, __ATOMIC_ACQUIRE);
}

void source_release(struct source *s)
{
	s->released = s->now.tail = s->ring.tail;
	if (s->entry)
		ledger_write(s->entry, &s->now);
	__atomic_store_n(&s->ring.page->data_tail, s->released, __ATOMIC_RELEASE);
}

/* Headers and times are 8 bytes at multiples of 8, so they never wrap. */
static uint64_t ring_word(const struct ring *r, uint64_t at)
{
	uint64_t v;

	memcpy(&v, r->data + (at & (r->data_bytes - 1)), sizeof(v));
	return v;
}

bool source_peek(struct source *s, uint64_t tail)
{
	uint64_t left = s->head - tail, word;
	size_t at = s->sample_time_at;

	if (!left)
		return false;
	word = ring_word(&s->ring, tail);
	memcpy(&s->next, &word, sizeof(s->next));
	if (left > s->ring.data_bytes || s->next.size < sizeof(s->next) || s->next.size > left ||
	    s->next.size % 8) {
		s->next.size = 0;
		return true;
	}
	/* A record without a time keeps its place after the one before it. */
	if (s->next.type != PERF_RECORD_SAMPLE || s->next.size < at + sizeof(word))
		at = record_time_offset(s->layout, s->next.type, s->next.size);
	if (at)
		s->next_time = ring_word(&s->ring, tail + at);
	return true;
}

/* Moves tail over samples alone, as source_peek() would one by one. */
static uint64_t pass_samples(const struct source *s, uint64_t tail, uint64_t *youngest)
{
	const size_t at = s->sample_time_at;
	struct perf_event_header h;

	while (at && s->head - tail >= sizeof(h)) {
		uint64_t word = ring_word(&s->ring, tail), time;

		memcpy(&h, &word, sizeof(h));
		if (h.type != PERF_RECORD_SAMPLE || h.size < at + sizeof(time) || h.size % 8 ||
		    h.size > s->head - tail)
			break;
		time = ring_word(&s->ring, tail + at);
		*youngest = time > *youngest ? time : *youngest;
		tail += h.size;
	}
	return tail;
}

uint64_t source_youngest(const struct source *s)
{
	struct source walk = *s;
	uint64_t youngest = 0, tail = s->ring.tail;

	if (s->head - tail > s->ring.data_bytes)
		return 0;
	for (;;) {
		tail = pass_samples(s, tail, &youngest);
		if (!source_peek(&walk, tail) || !walk.next.size)
			return youngest;
		youngest = walk.next_time > youngest ? walk.next_time : youngest;
		tail += walk.next.size;
	}
}

void source_read_lost(struct source *s)
{
	struct {
		uint64_t value, enabled_ns, lost;
	} counts;

	if (s->event_fd >= 0 &&
	    read(s->event_fd, &counts, sizeof(counts)) == (ssize_t)sizeof(counts))
		s->lost_read = counts.lost + s->now.lost_earlier;
}

uint64_t source_read_count(const struct source *s)
{
	uint64_t counts[3]; /* and how long it was enabled, and lost ones */

	return s->event_fd >= 0 && read(s->event_fd, counts, sizeof(counts)) >=
					   (ssize_t)sizeof(counts[0])
		       ? counts[0]
		       : 0;
}

/* The kernel's id of an event, unique until reboot; 0: unknown (before 3.12). */
static uint64_t event_id(int fd)
{
	uint64_t id = 0;

	return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

void source_begin(struct source *s)
{
	uint64_t id = event_id(s->ring.fd);

	s->released = s->ring.tail;
	s->now = (struct ledger_slot){.tail = s->ring.tail};
	if (s->entry)
		ledger_adopt(s->entry, id, s->ring.tail, &s->now);
	s->event_fd = s->ring.fd;
	/* Another event has replaced it, which source_replace_event() will bring. */
	if (s->now.event_id && s->now.event_id != id)
		s->event_fd = -1;
	else
		s->now.event_id = id;
	s->lost_read = s->now.lost_reported;
}

void source_replace_event(struct source *s, int event_fd, bool read_lost)
{
	uint64_t id = event_id(event_fd);

	/* For a restarted profiler the event may not be new. */
	if (!id || id != s->now.event_id) {
		if (read_lost)
			source_read_lost(s);
		s->now.lost_earlier = s->lost_read;
		s->now.event_id = id;
	}
	s->event_fd = event_fd;
}

uint64_t source_lost_news(struct source *s)
{
	uint64_t known = s->now.lost_recorded > s->lost_read ? s->now.lost_recorded : s->lost_read;
	uint64_t news = known - s->now.lost_reported;

	s->now.lost_reported = known;
	return news;
}
