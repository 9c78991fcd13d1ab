/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests of children, and the broker's answers. A request that the child's row (peers.h) does
 * not allow is refused. Every file that a child gets goes through here; src/opener opens it, and
 * checks what the child asked for.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/broker/peers.h"
#include "src/broker/strikes.h"
#include "src/process/message.h"
#include "util/time-share.h"

/* What the answers depend on. Every pointer is borrowed. */
struct answer_sources {
	const struct strikes *strikes; /* files that the asking child must not read for now */
	struct time_share *share;      /* the share of time that files of strangers may take */
	struct opener_helper *helper;  /* opens them */
	/* A recording is read instead of the host: children may ask for files that it names, by
	 * their paths. */
	bool recording;
	/* Answers a request of a type that the opener does not know; NULL: there are none. 0, or
	 * -errno, which is the child's answer. */
	int (*other)(void *ctx, struct peer_id who, const struct message *ask, struct message *ret);
	/* Finds a debug file that this host lacks; NULL: there is no other place. A descriptor,
	 * which the callee hands over, or -errno, which is the child's answer. */
	int (*debug_file)(void *ctx, const struct message *ask);
	/* May the process's memory be read, that is, is it not set aside? NULL: always. */
	bool (*may_read)(void *ctx, uint32_t pid);
	/* Has the kernel reported that the file was mapped, as far as that is still known? NULL:
	 * it has not. The path may have no end. */
	bool (*was_mapped)(void *ctx, const struct mapped_file_name *file);
	void *ctx;
};

struct asker {
	const struct peer_row *row;
	struct peer_id id;
	const char *name; /* for the log; borrowed */
	pid_t pid;
	bool refused; /* it made a request that its row forbids, and the log says so */
};

/* Answers the next request on the socket, if there is one, without waiting: 0; -EAGAIN: the child
 * does not read its answers; another -errno: the socket is broken. */
int answer_ask(const struct answer_sources *s, struct asker *asker, int sock);
