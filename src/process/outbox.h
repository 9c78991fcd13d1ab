/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finished items that the next process has not settled yet. They are kept in order, sent without
 * blocking, and sent again to a new receiver if the old one dies. Bounded in number and bytes: the
 * oldest entry is dropped first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/message.h"
#include "util/cleanup.h"

struct loop;
struct outbox;

struct outbox_entry {
	uint64_t id; /* rises by one from entry to entry */
	uint64_t n_samples, bytes;
	uint64_t made_ns; /* CLOCK_MONOTONIC */
	int fd;		  /* of the contents */
	void *more;	  /* the owner's; forget() gives it back */
	/* For the owner: how many messages it has sent before the entry; 0 again with a new
	 * receiver. */
	uint32_t n_out;
	bool sent, settled;
};

struct outbox_callbacks {
	/* Sends an entry, after everything that it depends on. 0, or -errno: the outbox calls it
	 * again later, unless the connection broke. */
	int (*send)(void *ctx, int sock, struct outbox_entry *e);
	/* An entry is removed: it was settled, dropped for room, or the outbox is freed. NULL: not
	 * called. */
	void (*forget)(void *ctx, struct outbox_entry *e);
	/* An entry is dropped to make room. */
	void (*dropped)(void *ctx, const struct outbox_entry *e);
	/* Entries may have been sent or settled, or will be sent again. NULL: not called. */
	void (*changed)(void *ctx);
	/* A message from the receiver that settles no entry. NULL: there are none. */
	void (*message)(void *ctx, const struct message *m);
	enum message_type done; /* the message that settles entry m->item.id */
	bool keep_settled;	/* keep settled entries, and send them again to a new receiver */
	void *ctx;
};

/* loop is borrowed, callbacks are copied. 0 or -errno. */
int outbox_new(struct outbox **ret, struct loop *loop, const struct outbox_callbacks *callbacks,
	       uint32_t max_entries, uint64_t max_bytes);
/* Closes the socket and the entries' descriptors. Returns NULL. */
struct outbox *outbox_free(struct outbox *o);
DEFINE_CLEANUP(struct outbox *, outbox_free)

/* A new receiver: takes sock, and sends every entry again. */
void outbox_connect(struct outbox *o, int sock);
/* Takes fd and more, and sends the entry if it can. Returns the entry, borrowed until the next
 * call. NULL: no memory, and fd and more stay the caller's. */
const struct outbox_entry *outbox_push(struct outbox *o, int fd, uint64_t bytes, uint64_t n_samples,
				       void *more);
/* Is there a receiver, and does it have all entries? */
bool outbox_all_sent(const struct outbox *o);
/* Entry i, oldest first, borrowed until the next call; NULL: there is none. */
const struct outbox_entry *outbox_at(const struct outbox *o, uint32_t i);
bool outbox_all_settled(const struct outbox *o);
