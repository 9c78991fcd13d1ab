/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's control socket: a stream socket in the runtime directory. A client sends one line, a
 * command that struct control_callbacks answers, and gets lines "NAME VALUE" and a last line, "ok"
 * or "error: REASON"; then the connection ends.
 *
 * Root, the daemon's own user and members of the group that the children run as may use it. The
 * children of a daemon that runs as root may not, because they read hostile data.
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
	/* Executes a command: 0, with its lines written to answer; 1: not finished, call again
	 * soon; -errno, with the reason in error. begun: for the callee's use, false at the first
	 * call. */
	int (*command)(void *ctx, const char *name, bool *begun, FILE *answer, char *error,
		       size_t n_error);
	void *ctx;
};

/*
 * Takes the lock beside the control socket (PATH.lock, which holds our pid), so that a second
 * daemon with the same config does not start. Returns the descriptor that holds the lock, which the
 * caller owns; -EWOULDBLOCK: process *ret_pid holds it (0: unknown); another -errno: the lock
 * cannot be taken.
 */
int control_lock(const char *path, pid_t *ret_pid);

/* uid, gid: those of the children; (uid_t)-1 and (gid_t)-1: those of the daemon. callbacks are
 * copied. 0, or -errno with the reason in error; -EADDRINUSE: another daemon listens there. */
int control_new(struct control **ret, struct loop *loop, const char *path, uid_t uid, gid_t gid,
		const struct control_callbacks *callbacks, char *error, size_t n_error);
/* Ends connections and removes the socket. */
struct control *control_free(struct control *c);
DEFINE_CLEANUP(struct control *, control_free)
