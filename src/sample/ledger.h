/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What has been read from the rings, in memory that outlives its reader: the next one knows to the
 * last sample how far the one before came.
 *
 * Each ring has two slots. Before the reader moves the tail of a ring it writes what holds from
 * then on into the slot that does not hold now, with the new tail in it: so at any moment the slot
 * with the tail of the ring holds, wherever the reader was killed.
 */
#include <stdint.h>

#include "util/cleanup.h"

/* Since the ledger was made. */
struct sample_tally {
	uint64_t samples;  /* read from the rings */
	uint64_t filtered; /* of these, not wanted */
	uint64_t lost;	   /* never came into a ring, as the kernel says */
};

struct ledger_slot {
	uint64_t tail;		   /* of the ring */
	uint64_t turn;		   /* grows: of two slots with that tail the later one holds */
	struct sample_tally tally; /* of this ring, and of those before it in its place */
	/* Of this ring: by its records; told in tally; of its events before the one with
	 * event_id. */
	uint64_t lost_recorded, lost_told, lost_earlier;
	uint64_t event_id; /* of the event that samples into it; 0: not known */
};

struct ledger_entry {
	uint64_t ring_id; /* the kernel's id of the event whose ring it is; 0: not known */
	struct ledger_slot slots[2];
};

struct ledger;

/* New, and mapped: a descriptor for others, or -errno. */
int ledger_new(struct ledger **ret);
/* The ledger in fd, which stays the caller's. 0; -EBADMSG: it is none; -errno. */
int ledger_map(int fd, struct ledger **ret);
struct ledger *ledger_unmap(struct ledger *l);
DEFINE_CLEANUP(struct ledger *, ledger_unmap)

/* The entry of a ring: of an event (its index), or SAMPLE_MAX_EVENTS for the side band. NULL: there
 * is no such CPU or event. */
struct ledger_entry *ledger_entry(struct ledger *l, uint32_t index, int cpu);
/*
 * What holds for a ring with that id and tail. Where another ring was before in its place the tally
 * goes on, and the rest begins anew.
 */
void ledger_adopt(struct ledger_entry *e, uint64_t ring_id, uint64_t tail, struct ledger_slot *ret);
/* What will hold once the tail of the ring is s->tail; s->turn grows. */
void ledger_write(struct ledger_entry *e, struct ledger_slot *s);

/*
 * When the events of switches stood still, by CLOCK_MONOTONIC: whoever stops them says so before
 * they go on, so that it is known to the reader of any record from after it.
 */
struct ledger_gap {
	uint64_t begin_ns, end_ns; /* end 0: it is not over */
};
void ledger_begin_gap(struct ledger *l, uint64_t time_ns);
void ledger_end_gap(struct ledger *l, uint64_t time_ns);
/* How many are over. */
uint64_t ledger_n_gaps(const struct ledger *l);
/* The i-th, from 0. 0; -EAGAIN: it has not begun; -ESTALE: it is not kept any more. */
int ledger_gap(const struct ledger *l, uint64_t i, struct ledger_gap *ret);

/* Of one ring, and of all of an event: as the slots written last say. */
struct sample_tally ledger_tally(const struct ledger_entry *e);
struct sample_tally ledger_sum(const struct ledger *l, uint32_t index);
