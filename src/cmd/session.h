/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run of a command that takes a while: an event loop, its signals, and the result that ends it.
 */
#include <stdbool.h>
#include <sys/signalfd.h>

#include "util/loop.h"

struct session {
	struct loop *loop;
	int signal_fd;
	int result;
	void (*on_signal)(void *ctx, const struct signalfd_siginfo *s);
	void *ctx;
};

#define SESSION_INIT                                                                               \
	{                                                                                          \
		.signal_fd = -1                                                                    \
	}

/*
 * Opens the loop. From then on SIGINT, SIGTERM, SIGHUP, SIGCHLD and those of more (a list that ends
 * with 0; NULL: none) are blocked; the loop calls on_signal for each. SIGPIPE is ignored. 0 or
 * -errno; call session_close() in either case.
 */
int session_open(struct session *s, const int *more,
		 void (*on_signal)(void *ctx, const struct signalfd_siginfo *s), void *ctx);
/* Runs until session_end(), and returns its result; -errno if the loop fails. */
int session_run(struct session *s);
/* Ends a session. Its type is that of broker_options.done. */
void session_end(void *session, int result);
/* Takes the next pending signal, for a command whose loop does not run. false: there is none. */
bool session_next_signal(const struct session *s, struct signalfd_siginfo *ret);
void session_close(struct session *s);
