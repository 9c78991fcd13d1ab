/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of src/sample: one ring of the merge. */
#include "src/sample/decode.h"
#include "src/sample/ledger.h"
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
	int event_fd; /* whose count read(2) tells: ring.fd, or the event in its place; -1: neither */
	uint64_t lost_read;	    /* as it said last, with those of the events before it */
	struct ledger_entry *entry; /* NULL: no ledger is kept */
	struct ledger_slot now;	    /* what is to hold, each lost record told once */
};

/* Goes on where the ledger says that the reader before us was. */
void source_begin(struct source *s);
uint64_t source_load_head(const struct source *s);
/* What lies before tail has been read, and is in now: the kernel may write there. */
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
/* Count of read(2), for events opened with PERF_FORMAT_LOST, into lost_read. */
void source_read_lost(struct source *s);
/* Another event writes into the ring: what it counts is added to what is known. */
void source_replace_event(struct source *s, int event_fd, bool read_lost);
/* What its records and read(2) know and was not told yet; told from now on. */
uint64_t source_lost_news(struct source *s);
