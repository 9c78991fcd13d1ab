/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One child process, for the supervisor, which decides when it starts and ends: its sockets, its
 * status page, its process and the delay before the next one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/broker/answer.h"
#include "src/broker/effort.h"
#include "src/broker/peers.h"
#include "util/clock.h"

/* How often the supervisor looks at all of them: while one is at work, and else. */
#define CHILD_WATCH_NS	    (250 * NSEC_PER_MSEC)
#define CHILD_IDLE_WATCH_NS (500 * NSEC_PER_MSEC)

struct child {
	struct peer_id id;
	const struct peer_row *row; /* borrowed */
	char name[16];
	pid_t pid; /* 0: not running */
	int control, ask, status_fd;
	struct status_page *status;	 /* of all its processes; NULL before the first */
	uint64_t started_ns, backoff_ns; /* started_ns: or tried to */
	uint64_t start_at_ns;		 /* 0: not waiting */
	uint64_t n_starts;
	uint32_t patience; /* the time for one file is doubled so often */
	struct effort effort;
	struct asker asker;
	bool stopping, restart;
	bool took_too_long; /* and was killed for that */
	uint32_t n_undead;  /* so often it was there all the same when it was looked at */
	bool unwanted;	    /* supervisor_kill(): who called it has said why */
	bool deaf;	    /* it was killed because it does not read what it is sent */
};

void child_init(struct child *c, const struct peer_row *row, uint32_t index);
/* Kills its process and frees all but its sockets. */
void child_deinit(struct child *c);

/* Starts a process of the program exe_fd, with new sockets. 0, or -errno, and nothing runs. */
int child_start(struct child *c, int exe_fd);
/* It runs, or died and will be started again. */
bool child_is_there(const struct child *c);
/* Sets when it is to be started again: each time later, as long as its processes die soon. Returns
 * the delay. */
uint64_t child_start_later(struct child *c);
/* message_send() on its control socket. -ENOTCONN: it does not run, or does not listen. */
int child_send(struct child *c, const struct message *m, const int *fds, size_t n_fds);
/* Kills a child that does not read what it is sent, as r (-EAGAIN) says. Returns r. */
int child_sent(struct child *c, int r);
/* Clears its page: what the last process wrote there is not the next one's. */
void child_clear_page(const struct child *c);
/* "was killed by signal 9 (Killed)" */
void child_describe_death(int wait_status, char *buf, size_t size);
