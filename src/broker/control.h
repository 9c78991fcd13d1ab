/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's control socket: a stream socket in the runtime directory. A client sends one line, a
 * command that struct control_callbacks answers (run.c), and gets lines "NAME VALUE" and a last
 * line, "ok" or "error: REASON"; then the connection ends. There is only this version of it, 1.
 *
 * Root, the daemon's own user and members of the group that the children run as may use it. The
 * children of a daemon that runs as root may not: they read what strangers wrote.
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "util/cleanup.h"

#define CONTROL_DEFAULT_PATH "/run/perfwalk/control"
#define CONTROL_LINE_MAX     64

struct loop;
struct control;

struct control_callbacks {
	/* A command: lines into answer and 0; 1: not done yet, to be asked again for a while;
	 * -errno with the reason in error. begun: the callee's, false at first. */
	int (*command)(void *ctx, const char *name, bool *begun, FILE *answer, char *error,
		       size_t n_error);
	void *ctx;
};

/*
 * The control socket identifies a daemon, so a second one with the same config runs into a lock
 * beside it (PATH.lock, with our pid in it). Returns the descriptor that holds the lock;
 * -EWOULDBLOCK: process *ret_pid holds it (0: unknown); other -errno: the lock cannot be taken.
 */
int control_lock(const char *path, pid_t *ret_pid);

/* gid, uid: of the children, (gid_t)-1 and (uid_t)-1 when they run as the daemon does. 0, or -errno
 * with the reason in error: -EADDRINUSE when another daemon listens there. */
int control_new(struct control **ret, struct loop *loop, const char *path, uid_t uid, gid_t gid,
		const struct control_callbacks *callbacks, char *error, size_t n_error);
/* Ends connections and removes the socket. */
struct control *control_free(struct control *c);
DEFINE_CLEANUP(struct control *, control_free)
