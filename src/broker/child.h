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

/* How often the supervisor looks at all children: while one works, and otherwise. */
#define CHILD_WATCH_NS	    (250 * NSEC_PER_MSEC)
#define CHILD_IDLE_WATCH_NS (500 * NSEC_PER_MSEC)

struct child {
	struct peer_id id;
	const struct peer_row *row; /* borrowed */
	char name[16];
	pid_t pid; /* 0: not running */
	int control, ask, status_fd;
	struct status_page *status; /* of all its processes; NULL before the first */
	uint64_t started_ns;	    /* the last attempt to start it (CLOCK_MONOTONIC) */
	uint64_t backoff_ns;	    /* the last delay */
	uint64_t start_at_ns;	    /* the next attempt; 0: none is due */
	uint64_t n_starts;
	uint32_t patience; /* how often the time for one file was doubled */
	struct effort effort;
	struct asker asker;
	bool stopping, restart;
	bool took_too_long; /* it was killed because its work took too long */
	uint32_t n_undead;  /* how many looks ago it was killed; it has not ended yet */
	bool unwanted;	    /* it was killed by supervisor_kill(), whose caller has logged why */
	bool deaf;	    /* it was killed because it did not read its messages */
};

/* row: borrowed for the child's life. */
void child_init(struct child *c, const struct peer_row *row, uint32_t index);
/* Kills its process and frees everything except its sockets. */
void child_deinit(struct child *c);

/* Starts a process of the program exe_fd (borrowed), with new sockets. 0; -errno: no process
 * runs. */
int child_start(struct child *c, int exe_fd);
/* Does it run, or will it be started again after it died? */
bool child_is_there(const struct child *c);
/* Sets the time of the next start, with a longer delay each time that a process dies soon after its
 * start. Returns the delay in nanoseconds. */
uint64_t child_start_later(struct child *c);
/* message_send() on its control socket. -ENOTCONN: it does not run, or does not listen. */
int child_send(struct child *c, const struct message *m, const int *fds, size_t n_fds);
/* The same without waiting: its socket takes some hundred small messages. */
int child_send_now(struct child *c, const struct message *m, const int *fds, size_t n_fds);
/* r: what a send returned. -EAGAIN means that the child does not read its messages: kills it.
 * Returns r. */
int child_sent(struct child *c, int r);
/* Clears its page, so that the next process does not inherit what the last one wrote. */
void child_clear_page(const struct child *c);
/* Writes how the process ended, such as "was killed by signal 9 (Killed)". */
void child_describe_death(int wait_status, char *buf, size_t size);
