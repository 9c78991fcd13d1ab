/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts of what has been read from the rings, in memory that outlives the reader: the next reader
 * knows to the sample how far the last one came.
 *
 * Each ring has two slots. Before the reader moves the tail of a ring, it writes the new counts and
 * the new tail into the slot that is not current. So the slot with the ring's tail is always the
 * current one, wherever the reader was killed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Counts since the ledger was made. */
struct sample_tally {
	uint64_t samples;  /* read from the rings */
	uint64_t filtered; /* of these, excluded by a filter */
	uint64_t lost;	   /* never reached a ring, says the kernel */
};

struct ledger_slot {
	uint64_t tail; /* of the ring */
	/* grows: if both slots have that tail, the later one is current */
	uint64_t turn;
	struct sample_tally tally; /* of this ring and of earlier rings in its place */
	/* Samples lost in this ring: by its records; those counted in tally; those of events before
	 * the one with event_id. */
	uint64_t lost_recorded, lost_reported, lost_earlier;
	uint64_t event_id; /* the event that samples into it; 0: unknown */
};

struct ledger_entry {
	uint64_t ring_id; /* the kernel's id of the event that owns the ring; 0: unknown */
	struct ledger_slot slots[2];
};

struct ledger;

/* Makes and maps a ledger. Returns a descriptor for other processes, or -errno. */
int ledger_new(struct ledger **ret);
/* Maps the ledger in fd, which stays the caller's. 0; -EBADMSG: not a ledger; -errno. */
int ledger_map(int fd, struct ledger **ret);
struct ledger *ledger_unmap(struct ledger *l);
DEFINE_CLEANUP(struct ledger *, ledger_unmap)

/* The entry of a ring. index: the event, or SAMPLE_MAX_EVENTS for the side band. NULL: no such CPU
 * or event. */
struct ledger_entry *ledger_entry(struct ledger *l, uint32_t index, int cpu);
/*
 * Sets *ret to the current slot for a ring with that id and tail. If another ring was in its place
 * before, the tally continues and the rest starts again.
 */
void ledger_adopt(struct ledger_entry *e, uint64_t ring_id, uint64_t tail, struct ledger_slot *ret);
/* Writes the slot that becomes current once the tail of the ring is s->tail; increments s->turn. */
void ledger_write(struct ledger_entry *e, struct ledger_slot *s);

/*
 * A time, by CLOCK_MONOTONIC, in which the events of switches were stopped. The broker writes it
 * before it starts them again, so a reader of any later record knows of it.
 */
struct ledger_gap {
	uint64_t begin_ns, end_ns; /* end 0: not over yet */
};
void ledger_begin_gap(struct ledger *l, uint64_t time_ns);
void ledger_end_gap(struct ledger *l, uint64_t time_ns);
/* The number of gaps that are over. */
uint64_t ledger_n_gaps(const struct ledger *l);
/* Has the i-th gap begun? */
bool ledger_has_gap(const struct ledger *l, uint64_t i);
/* The i-th gap, from 0. 0; -EAGAIN: it has not begun; -ESTALE: it is no longer kept. */
int ledger_gap(const struct ledger *l, uint64_t i, struct ledger_gap *ret);

/* The counts of one ring, and of all rings of an event, by their newest slots. */
struct sample_tally ledger_tally(const struct ledger_entry *e);
struct sample_tally ledger_sum(const struct ledger *l, uint32_t index);
