/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finished items that the next process has not settled yet. They are kept in order, sent without
 * blocking, and sent again to a new receiver when the old one dies. Bounded in number and bytes:
 * the oldest entry is dropped first.
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
	void *more; /* the owner's; forget() gives it back */
	uint32_t
		/* the owner's: what it has sent before the entry; 0 again with a new receiver */
		n_out;
	bool sent, settled;
};

struct outbox_callbacks {
	/* Sends an entry, after all that it depends on. 0, or -errno: it is called again, after a
	 * pause unless the connection broke. */
	int (*send)(void *ctx, int sock, struct outbox_entry *e);
	/* An entry is removed: settled, dropped for room, or at the end. NULL: nothing to do. */
	void (*forget)(void *ctx, struct outbox_entry *e);
	/* An entry is dropped to make room. */
	void (*dropped)(void *ctx, const struct outbox_entry *e);
	/* Entries may have been sent or settled, or are to be sent again. NULL: nothing to do. */
	void (*changed)(void *ctx);
	/* A message from the receiver that settles no entry. NULL: none is expected. */
	void (*message)(void *ctx, const struct message *m);
	enum message_type done; /* the message that settles entry m->item.id */
	bool keep_settled;	/* settled entries stay, and are sent again to a new receiver */
	void *ctx;
};

int outbox_new(struct outbox **ret, struct loop *loop, const struct outbox_callbacks *callbacks,
	       uint32_t max_entries, uint64_t max_bytes);
struct outbox *outbox_free(struct outbox *o);
DEFINE_CLEANUP(struct outbox *, outbox_free)

/* A new receiver: takes sock, and sends every entry again. */
void outbox_connect(struct outbox *o, int sock);
/* Takes fd and more, and sends the entry if it can. The entry, borrowed until the next call;
 * NULL: no memory, and fd and more stay the caller's. */
const struct outbox_entry *outbox_push(struct outbox *o, int fd, uint64_t bytes, uint64_t n_samples,
				       void *more);
/* To a receiver that is there. */
bool outbox_all_sent(const struct outbox *o);
/* Entry i, oldest first, borrowed until the next call; NULL: there is none. */
const struct outbox_entry *outbox_at(const struct outbox *o, uint32_t i);
bool outbox_all_settled(const struct outbox *o);
