/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of src/sample: one ring of the merge. */
#include "src/sample/decode.h"
#include "src/sample/sample.h"

struct source {
	struct ring ring;
	int cpu;
	uint32_t index; /* of the event: sample_options.index */
	bool sideband;
	uint64_t head;	    /* at merger_begin(): records end here */
	uint64_t head_read; /* the same, before the last merger_begin() */
	/* The record at ring.tail. */
	uint64_t next_time;
	struct perf_event_header next;
	int event_fd;	       /* whose count read(2) tells: ring.fd, or the event in its place */
	uint64_t lost_earlier; /* of the events that were in its place before */
	/* Each lost record is told once, see merger_read_lost(). */
	uint64_t lost_base, lost_read, lost_recorded, lost_told;
};

uint64_t source_load_head(const struct source *s);
/* What lies before tail has been read: the kernel may write there. */
void source_store_tail(struct source *s, uint64_t tail);
/*
 * Header and time of the record at tail into next and next_time. false: nothing left before head. A
 * header that cannot be true makes the rest unreadable: it is told as a record of size 0.
 */
bool source_peek(const struct record_layout *layout, struct source *s, uint64_t tail);
/* The youngest time between tail and head, by the headers alone. */
uint64_t source_youngest(const struct record_layout *layout, const struct source *s);
/* The bytes of next, which is at ring.tail; in wrapped (room for any record) when it wraps. */
const void *source_bytes(const struct source *s, void *wrapped);
/* Count of read(2), for events opened with PERF_FORMAT_LOST. false: not available. */
bool source_read_lost(const struct source *s, uint64_t *ret);
/* Another event writes into the ring: what it counts from now on is added to what is known. */
void source_replace_event(struct source *s, int event_fd);
/* What lost_recorded and lost_read know and was not told yet; told now. */
uint64_t source_lost_news(struct source *s);
