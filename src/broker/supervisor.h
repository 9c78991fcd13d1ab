/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tree: starts the children of a table of kinds (peers.h), joins neighbours by sockets, answers
 * their requests, restarts those that die with growing delays, and sets aside the files that killed
 * them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/broker/peers.h"
#include "src/broker/strikes.h"
#include "src/process/message.h"
#include "src/process/sandbox.h"
#include "src/process/setup.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"

struct loop;
struct opener_helper;
struct supervisor;

struct supervisor_callbacks {
	/* A message from a child on its control socket. */
	void (*message)(void *ctx, struct peer_id who, const struct message *m);
	/* A child has died, for whatever reason. Its status page is valid during this call, and
	 * empty afterwards. NULL: not called. */
	void (*died)(void *ctx, struct peer_id who);
	/* Answers a request of a type that the opener does not know; NULL: there are none. 0, or
	 * -errno, which is the child's answer. */
	int (*answer)(void *ctx, struct peer_id who, const struct message *ask,
		      struct message *ret);
	/* Finds a debug file that this host lacks; NULL: there is no other place. A descriptor,
	 * which the callee hands over, or -errno, which is the child's answer. */
	int (*debug_file)(void *ctx, const struct message *ask);
	/* May the process's memory be read, that is, is it not set aside? NULL: always. */
	bool (*may_read)(void *ctx, uint32_t pid);
	/* See answer.h. */
	bool (*was_mapped)(void *ctx, const struct mapped_file_name *file);
	/* A child ended after supervisor_stop() (clean), or will not be started again (not clean,
	 * unless its row is optional). */
	void (*gone)(void *ctx, struct peer_id who, bool clean);
	/* The supervisor has looked at the children, two to four times a second. NULL: not
	 * called. */
	void (*watched)(void *ctx);
	/* All kinds that supervisor_leave() named are gone. NULL: not called. */
	void (*left)(void *ctx, uint32_t kinds);
	/* A recording is read instead of the host: children may ask for files that it names, by
	 * their paths. */
	bool recording;
	/* The tree does one job, and ends when a child dies: no file is set aside, and the caller
	 * reports what the death meant. */
	bool once;
	struct setup_common judge; /* of judges of files; the opener has the same filter */
	/* The file that keeps which files are set aside, over a restart; NULL: none. Borrowed. */
	const char *strikes_path;
	uint64_t set_aside_ns; /* how long a file is set aside the first time; 0: an hour */
	void *ctx;
};

/* Of all kinds together. */
#define SUPERVISOR_MAX_CHILDREN 272

/*
 * rows: n_rows kinds, borrowed; their functions get the ctx of the callbacks, which are copied.
 * file_timeout_ns: how long a child may spend on one file before it is killed and the file is set
 * aside. 0 or -errno (logged). No child runs yet.
 */
int supervisor_new(struct supervisor **ret, struct loop *loop, const struct peer_row *rows,
		   size_t n_rows, const struct supervisor_callbacks *callbacks,
		   uint64_t file_timeout_ns);
/* Changes it from now on, for all children. */
void supervisor_set_file_timeout(struct supervisor *s, uint64_t file_timeout_ns);
/* Kills the children that still run. Returns NULL. */
struct supervisor *supervisor_free(struct supervisor *s);
DEFINE_CLEANUP(struct supervisor *, supervisor_free)

/* Starts a child. 0; -EINVAL: the table has no such child; another -errno. */
int supervisor_start(struct supervisor *s, struct peer_id who);
/* Starts, in the order of the table, the wanted children of these kinds (PEER_BIT) that do not run.
 * 0, or the first error. */
int supervisor_start_kinds(struct supervisor *s, uint32_t kinds);
/*
 * Asks all children of these kinds to finish, each in its turn (peer_row.stops_after). One that
 * dies before its turn is started again. gone() follows for each, and left() for all. A second call
 * adds its kinds to those of the first.
 */
void supervisor_leave(struct supervisor *s, uint32_t kinds);
/* Kills all children instead of asking them; it may call left(). */
void supervisor_kill_all(struct supervisor *s);
/* Asks a child to finish and exit; gone() follows. */
void supervisor_stop(struct supervisor *s, struct peer_id who);
/* Kills a child instead of asking it; gone() follows. */
void supervisor_kill(struct supervisor *s, struct peer_id who);
/* Kills a child and starts it again: its neighbours keep what it has not settled. */
void supervisor_restart(struct supervisor *s, struct peer_id who);
/* Should the child run, so that something is wrong while it does not? An optional one counts only
 * while it runs. */
bool supervisor_wanted(const struct supervisor *s, struct peer_id who);
/* Was it asked to finish, and does it still run? */
bool supervisor_stopping(const struct supervisor *s, struct peer_id who);
bool supervisor_running(const struct supervisor *s, struct peer_id who);
/* Does it run, or will it be started again after it died? */
bool supervisor_is_there(const struct supervisor *s, struct peer_id who);

/* Call it after SIGCHLD: reaps the children of the tree, and no others. */
void supervisor_reap(struct supervisor *s);
/* Sends one message to a running child; fds stay the caller's. 0; -ENOTCONN: it does not run;
 * another -errno. */
int supervisor_send(struct supervisor *s, struct peer_id who, const struct message *m,
		    const int *fds, size_t n_fds);
/* Does the same without waiting for the child: one whose socket is full does not read, and is
 * killed. For what strangers can cause, since everybody waits for the broker. */
int supervisor_send_now(struct supervisor *s, struct peer_id who, const struct message *m,
			const int *fds, size_t n_fds);
/* r: the result of sending something to the control socket of a child. If it did not read, it is
 * killed, and started again. */
void supervisor_sent(struct supervisor *s, struct peer_id who, int r);
/* Sends one message without waiting for the child: -EAGAIN if it does not read. For messages that
 * one child can make the broker send to another. */
int supervisor_try_send(struct supervisor *s, struct peer_id who, const struct message *m,
			const int *fds, size_t n_fds);
/* Has it read all that it was sent, or is it not there? Its queue holds few messages, so what can
 * wait leaves room for what cannot. */
bool supervisor_has_read(struct supervisor *s, struct peer_id who);
/* Iterates over all children of the table, in its order, whether they run or not. *at is 0 for the
 * first. false: there are no more. */
bool supervisor_next(const struct supervisor *s, uint32_t *at, struct peer_id *ret);
/* "profiler"; for a kind with several children "reader/3". Borrowed for the supervisor's life. */
const char *supervisor_name(const struct supervisor *s, struct peer_id who);
/* How often a child was started. */
uint64_t supervisor_starts(const struct supervisor *s, struct peer_id who);
/* How many files some child must not read for now. */
uint32_t supervisor_n_set_aside(const struct supervisor *s);
/* These files. Borrowed. */
const struct strikes *supervisor_strikes(const struct supervisor *s);
/* Lets the children read all of them again, and forgets their strikes. Returns how many they
 * were. */
uint32_t supervisor_forget_strikes(struct supervisor *s);
/* The process that opens files for the children. Borrowed. */
struct opener_helper *supervisor_opener(const struct supervisor *s);
/* The process id of a running child; 0 without one. */
pid_t supervisor_pid(const struct supervisor *s, struct peer_id who);
/* The control socket of a running child, borrowed; negative without one. */
int supervisor_control(const struct supervisor *s, struct peer_id who);
/* The child's status page, borrowed; all 0 while it does not run. Never NULL. The child writes it,
 * so its values are advisory. */
const struct status_page *supervisor_status(const struct supervisor *s, struct peer_id who);
