/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/sample: one ring of the merge. */
#include <string.h>

#include "src/sample/decode.h"
#include "src/sample/ledger.h"
#include "src/sample/sample.h"
#include "util/ensure.h"

struct source {
	struct ring ring;
	const struct record_layout *layout; /* of its records; the merger's */
	int cpu;
	uint32_t index; /* of the event: sample_options.index */
	bool sideband;
	uint64_t head;	    /* at merger_begin(): records end here */
	uint64_t released;  /* the kernel has the space before it; a part behind ring.tail */
	uint64_t head_read; /* the same, before the last merger_begin() */
	/* The record at ring.tail. */
	uint64_t next_time;
	struct perf_event_header next;
	size_t sample_time_at; /* offset of the time in a sample, which most records are; 0: none */
	/* the event to read lost counts from: ring.fd, or its replacement; -1: neither */
	int event_fd;
	uint64_t lost_read;	    /* its last result, plus the counts of the events before it */
	struct ledger_entry *entry; /* NULL: no ledger */
	struct ledger_slot now;	    /* the next slot to write; each lost record is counted once */
};

/* Continues where the previous reader was, according to the ledger. */
void source_begin(struct source *s);
uint64_t source_load_head(const struct source *s);
/* Gives back all space before the tail, and writes the counts into the ledger. */
void source_release(struct source *s);
/* Moves the tail: all before it has been read and counted in now. Now and then the kernel gets the
 * space back: for each record that would cost more than to read a small one. */
#define SOURCE_KEPT_PARTS 64 /* one of so many of a ring is given back later than it was read */
static inline void source_move_tail(struct source *s, uint64_t tail)
{
	ensure(tail - s->ring.tail <= s->head - s->ring.tail);
	s->ring.tail = tail;
	if (tail - s->released >= s->ring.data_bytes / SOURCE_KEPT_PARTS)
		source_release(s);
}
/*
 * Header and time of the record at tail into next and next_time. false: nothing left before head.
 * An impossible header makes the rest unreadable: it is returned as a record of size 0.
 */
bool source_peek(struct source *s, uint64_t tail);
/* The latest time between tail and head, from the headers alone. */
uint64_t source_youngest(const struct source *s);
/* The bytes of next, which is at ring.tail; copied to wrapped (room for any record) if it wraps. */
static inline const void *source_bytes(const struct source *s, void *wrapped)
{
	const struct ring *r = &s->ring;
	uint64_t from = r->tail & (r->data_bytes - 1), first = r->data_bytes - from;

	if (s->next.size <= first)
		return r->data + from;
	memcpy(wrapped, r->data + from, first);
	memcpy((uint8_t *)wrapped + first, r->data, s->next.size - first);
	return wrapped;
}
/* How many events the kernel has counted, in all tasks of the event; 0: that is not known. */
uint64_t source_read_count(const struct source *s);
/* Sets lost_read from read(2), for events opened with PERF_FORMAT_LOST. */
void source_read_lost(struct source *s);
/* Another event writes into the ring; its lost count will be added to those so far. */
void source_replace_event(struct source *s, int event_fd, bool read_lost);
/*
 * Lost records, from records and read(2), that were not reported yet. They count as reported from
 * now on.
 */
uint64_t source_lost_news(struct source *s);
