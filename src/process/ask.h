/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asking the broker: one request, one answer, a deadline. The broker answers in time whatever a
 * filesystem does; the deadline is for a broker that hangs itself. After a timeout there is no
 * further wait until the late answer has arrived, so that costs one deadline, not one for each
 * file.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

struct ask {
	int sock;
	uint32_t seq;
	bool stuck; /* an answer is overdue */
	uint64_t n_asked, n_timeouts;
};

/*
 * Both send m (with type and body set) to the broker and receive the answer into m. -errno: the
 * error in the answer; -ETIMEDOUT, -EBADMSG, or that of the socket.
 */
/* For requests with a descriptor as the answer; returns it, and the caller owns it. */
int ask_descriptor(struct ask *a, struct message *m);
/* For requests with values as the answer: 0. */
int ask_values(struct ask *a, struct message *m);
