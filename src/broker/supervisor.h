/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tree: starts the children of a table of kinds (peers.h), joins neighbours by sockets, answers
 * what they ask for, restarts what dies with back-off, and remembers the files that killed
 * somebody.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/broker/peers.h"
#include "src/broker/strikes.h"
#include "src/process/message.h"
#include "src/process/sandbox.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"

struct loop;
struct opener_helper;
struct supervisor;

struct supervisor_callbacks {
	/* A message from a child on its control socket. */
	void (*message)(void *ctx, struct peer_id who, const struct message *m);
	/* A child has died, for whatever reason: its status page is there for this call, and empty
	 * from then on. NULL: nobody wants to know. */
	void (*died)(void *ctx, struct peer_id who);
	/* Answers a request of a type that the opener knows nothing of; NULL: there is none. 0, or
	 * -errno, and the child is told. */
	int (*answer)(void *ctx, struct peer_id who, const struct message *ask,
		      struct message *ret);
	/* Finds a debug file that this host lacks; NULL: there is no other place. A descriptor,
	 * or -errno, which the child is told. */
	int (*debug_file)(void *ctx, const struct message *ask);
	/* Whether a process's memory may be read: it is not set aside. NULL: always. */
	bool (*may_read)(void *ctx, uint32_t pid);
	/* A child left after supervisor_stop() (clean) or will not be started again (not clean,
	 * unless nobody waits for it). */
	void (*gone)(void *ctx, struct peer_id who, bool clean);
	/* The children were looked at, as happens two to four times a second. NULL: the same. */
	void (*watched)(void *ctx);
	/* All kinds that supervisor_leave() named are gone. NULL: it is not called. */
	void (*left)(void *ctx, uint32_t kinds);
	/* A recording is read in the place of the host: files that it names may be asked for by
	 * their paths. */
	bool recording;
	/* A child that dies ends what is done here: there is nothing to be set aside, and the
	 * caller says what it meant. */
	bool once;
	enum sandbox_mode opener_seccomp; /* of who opens files for the children */
	const char *strikes_path; /* where files that are set aside are kept over a restart; NULL:
				     nowhere. Borrowed. */
	uint64_t set_aside_ns;	  /* how long a file is the first time; 0: an hour */
	void *ctx;
};

/* Of all kinds together. */
#define SUPERVISOR_MAX_CHILDREN 272

/*
 * rows: n kinds, borrowed; the ctx of their functions is that of the callbacks. file_timeout_ns:
 * how long a child may be at one file before it is killed and the file set aside.
 */
int supervisor_new(struct supervisor **ret, struct loop *loop, const struct peer_row *rows,
		   size_t n_rows, const struct supervisor_callbacks *callbacks,
		   uint64_t file_timeout_ns);
/* From now on, for all. */
void supervisor_set_file_timeout(struct supervisor *s, uint64_t file_timeout_ns);
/* Kills what still runs. */
struct supervisor *supervisor_free(struct supervisor *s);
DEFINE_CLEANUP(struct supervisor *, supervisor_free)

/* 0; -EINVAL: there is none such in the table; -errno. */
int supervisor_start(struct supervisor *s, struct peer_id who);
/* Starts, in the order of the table, what is wanted of these kinds (PEER_BIT) and does not run. 0,
 * or the first error. */
int supervisor_start_kinds(struct supervisor *s, uint32_t kinds);
/*
 * Asks all children of these kinds to finish, each when its turn has come (peer_row.stops_after);
 * one that dies meanwhile is started again until then. gone() follows for each, and left() for all.
 * A second call adds to the kinds of the first.
 */
void supervisor_leave(struct supervisor *s, uint32_t kinds);
/* The same without asking, for all there are; left() may be called from within. */
void supervisor_kill_all(struct supervisor *s);
/* Asks a child to finish and leave; gone() follows. */
void supervisor_stop(struct supervisor *s, struct peer_id who);
/* The same without asking. */
void supervisor_kill(struct supervisor *s, struct peer_id who);
/* Ends a child at once and starts it afresh: its neighbours keep what it has not settled. */
void supervisor_restart(struct supervisor *s, struct peer_id who);
/* So many of its kind are wanted now; something is amiss while it does not run. */
bool supervisor_wanted(const struct supervisor *s, struct peer_id who);
/* It was asked to finish, and has not yet. */
bool supervisor_stopping(const struct supervisor *s, struct peer_id who);
bool supervisor_running(const struct supervisor *s, struct peer_id who);
/* It runs, or died and will be started again. */
bool supervisor_is_there(const struct supervisor *s, struct peer_id who);

/* After SIGCHLD: reaps children of the tree, and no others. */
void supervisor_reap(struct supervisor *s);
/* Sends one message to a running child. */
int supervisor_send(struct supervisor *s, struct peer_id who, const struct message *m,
		    const int *fds, size_t n_fds);
/* The same, unless that would have to wait for the child: -EAGAIN. For what one child can make us
 * send to another. */
int supervisor_try_send(struct supervisor *s, struct peer_id who, const struct message *m);
/* All that there may be, one call each: *at is 0 for the first. In the order of the table. */
bool supervisor_next(const struct supervisor *s, uint32_t *at, struct peer_id *ret);
/* "profiler", or of a kind of which there may be several "reader/3". */
const char *supervisor_name(const struct supervisor *s, struct peer_id who);
/* How often a child was started. */
uint64_t supervisor_starts(const struct supervisor *s, struct peer_id who);
/* Files that some child does not read for now. */
uint32_t supervisor_n_set_aside(const struct supervisor *s);
const struct strikes *supervisor_strikes(const struct supervisor *s);
/* All of them are read again at once, as if nothing had happened. Returns how many. */
uint32_t supervisor_forget_strikes(struct supervisor *s);
/* Who opens files for the children. Borrowed. */
struct opener_helper *supervisor_opener(const struct supervisor *s);
/* The process id of a running child; 0 without one. */
pid_t supervisor_pid(const struct supervisor *s, struct peer_id who);
/* The control socket of a running child, borrowed; negative without one. */
int supervisor_control(const struct supervisor *s, struct peer_id who);
/* What a child says of itself; all 0 while it does not run. Never NULL. Advisory. */
const struct status_page *supervisor_status(const struct supervisor *s, struct peer_id who);
