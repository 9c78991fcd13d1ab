/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asking the broker: one request, one answer, a deadline. A broker that does not answer in time is
 * not waited for again until its late answer has arrived, so a stuck filesystem costs one deadline
 * and not one per file.
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
 * Both send m (type and body filled) to the broker and receive the answer into m. -errno: what the
 * answer says; -ETIMEDOUT, -EBADMSG, or that of the socket.
 */
/* For requests that are answered by a descriptor, which is returned and the caller's. */
int ask_descriptor(struct ask *a, struct message *m);
/* For requests that are answered by values alone: 0. */
int ask_values(struct ask *a, struct message *m);
