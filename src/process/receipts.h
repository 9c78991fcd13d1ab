/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the receiver of an outbox (outbox.h) says of its items: that one is done. None may be lost,
 * because its sender keeps the item until then: receipts that the socket does not take now are sent
 * later, in their order.
 */
#include <stdint.h>

#include "src/process/message.h"
#include "util/cleanup.h"

struct loop;
struct receipts;

/* loop is borrowed; without a sender at first. 0 or -errno. */
int receipts_new(struct receipts **ret, struct loop *loop);
/* Returns NULL. */
struct receipts *receipts_free(struct receipts *r);
DEFINE_CLEANUP(struct receipts *, receipts_free)

/* Another sender, or none (-EBADF): what was to be said to the one before is forgotten. sock must
 * not block; it is borrowed until the next call. */
void receipts_connect(struct receipts *r, int sock);
/* Says m->item.id of a message that is a struct item without descriptors. Without a sender nobody
 * needs it. */
void receipts_say(struct receipts *r, enum message_type type, uint64_t id);
