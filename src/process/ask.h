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
 * Sends m (type and body filled) and receives the answer into m. 0 and *ret_fd (owned, -1 none);
 * -ETIMEDOUT, -EBADMSG, or -errno of the socket. The answer's own error is in its body.
 */
int ask_broker(struct ask *a, struct message *m, int *ret_fd);
/* For requests that are answered by a descriptor: the descriptor or -errno. */
int ask_descriptor(struct ask *a, struct message *m);
