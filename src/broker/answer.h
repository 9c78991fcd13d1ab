/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What children ask the broker for, and what each request is answered with; what the child's row
 * (peers.h) does not allow is refused. Everything that a child gets opened goes through here; the
 * opening itself, with all checks of what was asked for, is src/opener.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/broker/peers.h"
#include "src/broker/strikes.h"
#include "src/process/message.h"
#include "util/time-share.h"

/* What the answers depend on. Everything is borrowed. */
struct answer_sources {
	const struct strikes *strikes; /* files that the asking child does not read for now */
	struct time_share *share;      /* of the clock, for files of strangers */
	struct opener_helper *helper;  /* which opens them */
	/* A recording is read in the place of the host: files that it names may be asked for by
	 * their paths. */
	bool recording;
	/* Answers a request that the opener knows nothing of; NULL: there is none. 0, or -errno,
	 * and the child is told. */
	int (*other)(void *ctx, struct peer_id who, const struct message *ask, struct message *ret);
	/* Finds a debug file that this host lacks; NULL: there is no other place. A descriptor,
	 * or -errno, which the child is told. */
	int (*debug_file)(void *ctx, const struct message *ask);
	/* Whether a process's memory may be read: it is not set aside. NULL: always. */
	bool (*may_read)(void *ctx, uint32_t pid);
	void *ctx;
};

struct asker {
	const struct peer_row *row;
	struct peer_id id;
	const char *name; /* for the log */
	pid_t pid;
	bool refused; /* it asked for what it may not have: logged once */
};

/* Answers the next request on the socket, if there is one: 0; -EAGAIN: the child does not read its
 * answers; other -errno: nothing comes from there any more. */
int answer_ask(const struct answer_sources *s, struct asker *asker, int sock);
