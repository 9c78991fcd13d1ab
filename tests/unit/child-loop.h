/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The loop of a test whose children are processes, and the steps that such a test waits for. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/loop.h"

/* For a timer: the test fails. */
static inline void child_loop_fail(void *ctx)
{
	fprintf(stderr, "it did not happen in time\n");
	exit(1);
}

/* A loop that calls on_signal when a child ends, and fails after a minute. Returns the descriptor
 * of the signals, which the caller closes after the loop. */
static inline int child_loop_new(struct loop **ret, loop_fd_fn on_signal)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK_INT(loop_new(ret), ==, 0);
	CHECK_INT(loop_add_fd(*ret, fd, EPOLLIN, on_signal, NULL), ==, 0);
	CHECK_INT(loop_add_timer(*ret, 60 * NSEC_PER_SEC, 0, child_loop_fail, NULL), >=, 0);
	return fd;
}

/* What a test waits for, and what it does then. The last one of several has seen NULL. */
struct step {
	bool (*seen)(void);
	void (*then)(void);
};

/* Takes the steps that are due; after the last one the loop ends. */
static inline void step_on(const struct step **steps, struct loop *loop)
{
	while ((*steps)->seen && (*steps)->seen()) {
		const struct step *step = (*steps)++;

		if (step->then)
			step->then();
	}
	if (!(*steps)->seen)
		loop_exit(loop, 0);
}
