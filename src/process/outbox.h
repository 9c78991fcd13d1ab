/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process has finished and the next one has not settled yet: kept in order, sent without
 * ever blocking, and sent again to a new receiver when the old one ends. Bounded in number and
 * bytes: the oldest entry goes first.
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
	uint64_t n_samples, bytes, made_ns /* CLOCK_MONOTONIC */;
	int fd;	    /* of the contents */
	void *more; /* the owner's; given back by forget() */
	uint32_t
		n_out; /* the owner's: what has gone out ahead of it; 0 again with a new receiver */
	bool sent, settled;
};

struct outbox_callbacks {
	/* Sends an entry, with what has to go ahead of it. 0 or -errno: it is called again, after
	 * a pause unless the connection broke. */
	int (*send)(void *ctx, int sock, struct outbox_entry *e);
	/* An entry is removed: settled, dropped for room, or at the end. NULL: nothing to do. */
	void (*forget)(void *ctx, struct outbox_entry *e);
	/* An entry has to make room. */
	void (*dropped)(void *ctx, const struct outbox_entry *e);
	/* A message from the receiver that settles no entry. NULL: none is expected. */
	void (*message)(void *ctx, const struct message *m);
	enum message_type done; /* the message that settles entry m->item.id */
	bool keep_settled;	/* they stay, and are sent again to a new receiver */
	void *ctx;
};

int outbox_new(struct outbox **ret, struct loop *loop, const struct outbox_callbacks *callbacks,
	       uint32_t max_entries, uint64_t max_bytes);
struct outbox *outbox_free(struct outbox *o);
DEFINE_CLEANUP(struct outbox *, outbox_free)

/* A new receiver: sock becomes the outbox's. Every entry is sent again. */
void outbox_connect(struct outbox *o, int sock);
/* Takes fd and more, and sends the entry if it can. The entry, borrowed until the next call;
 * NULL: no memory, and fd and more stay the caller's. */
const struct outbox_entry *outbox_push(struct outbox *o, int fd, uint64_t bytes, uint64_t n_samples,
				       void *more);
bool outbox_all_sent(const struct outbox *o);
bool outbox_all_settled(const struct outbox *o);
