/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ring of records in memory that two processes share: one writes, the other reads. Neither waits
 * for the other: a record that does not fit is refused. The reading side trusts nothing in it: it
 * copies a record before it looks at it, and never reads a ring again that contradicted itself.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

enum { FRAME_RING_BYTES = 1 << 20, FRAME_RING_MAX_RECORD = 64 << 10 };

struct frame_ring;

/* The writing side: makes a ring in new memory. Returns its descriptor, which is the caller's, or
 * -errno; -ENOTSUP: before Linux 3.17 there are no seals, and the reader could not rely on the
 * size. */
int frame_ring_new(struct frame_ring **ret);
/* The reading side: maps a ring. fd stays the caller's. 0; -EBADMSG: it is no such ring; another
 * -errno. */
int frame_ring_map(struct frame_ring **ret, int fd);
struct frame_ring *frame_ring_free(struct frame_ring *r);
DEFINE_CLEANUP(struct frame_ring *, frame_ring_free)

/* Appends a record of n bytes. false: there is no room, or n is 0 or above FRAME_RING_MAX_RECORD.
 * */
bool frame_ring_put(struct frame_ring *r, const void *bytes, size_t n);
/*
 * Copies the oldest record to buf (FRAME_RING_MAX_RECORD bytes); it stays in the ring until
 * frame_ring_drop(). Returns its size; 0: there is none; -EBADMSG: the ring is broken.
 */
int frame_ring_peek(struct frame_ring *r, void *buf);
void frame_ring_drop(struct frame_ring *r);
