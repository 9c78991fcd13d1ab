/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Requests to the broker: one request, one answer, a deadline. The broker answers in time whatever
 * a file system does; the deadline is for a broker that hangs itself. After a timeout, requests
 * fail at once until the late answer has arrived, so a hung broker costs one deadline, not one for
 * each file.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

struct ask {
	int sock; /* the caller's */
	uint32_t seq;
	bool stuck; /* an answer is overdue */
	uint64_t n_asked, n_timeouts;
};

/*
 * Both functions send m (with type and body set) to the broker and receive the answer into m.
 * -errno: the error in the answer; -ETIMEDOUT: no answer in time; -EBADMSG: not an answer to m; or
 * an error of the socket.
 */
/* For a request that is answered with a descriptor: returns it, and the caller owns it. */
int ask_descriptor(struct ask *a, struct message *m);
/* For a request that is answered with values: 0. */
int ask_values(struct ask *a, struct message *m);
