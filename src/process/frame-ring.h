/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ring of records in memory that two processes share: one writes, the other reads. Neither waits
 * for the other: a record that does not fit is refused. The reading side trusts nothing that is in
 * there: it copies a record out before it looks at it, and a ring that contradicts itself is
 * broken for good.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

enum { FRAME_RING_BYTES = 1 << 20, FRAME_RING_MAX_RECORD = 64 << 10 };

struct frame_ring;

/* Of the writing side: new memory. The descriptor, which is the caller's, or -errno; -ENOTSUP: a
 * kernel (before Linux 3.17) on which the other side could not rely on its size. */
int frame_ring_new(struct frame_ring **ret);
/* Of the reading side. fd stays the caller's. 0; -EBADMSG: it is no such ring; -errno. */
int frame_ring_map(struct frame_ring **ret, int fd);
struct frame_ring *frame_ring_free(struct frame_ring *r);
DEFINE_CLEANUP(struct frame_ring *, frame_ring_free)

/* Appends n bytes. false: there is no room for them, or they are no record (0, or too many). */
bool frame_ring_put(struct frame_ring *r, const void *bytes, size_t n);
/*
 * The oldest record, copied to buf (FRAME_RING_MAX_RECORD bytes), which stays in the ring until
 * frame_ring_drop(): its size; 0: there is none; -EBADMSG: the ring is broken.
 */
int frame_ring_peek(struct frame_ring *r, void *buf);
void frame_ring_drop(struct frame_ring *r);
