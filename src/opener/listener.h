/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A socket for clients. The broker makes it; a child may serve it. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/address.h"

struct listener {
	int fd; /* -EBADF: none */
	struct address address;
	bool bound; /* the path is ours to remove */
};

/*
 * Listens at the address, close-on-exec and non-blocking. For a path it makes the directory, and
 * sets the mode 0600, or with a gid ((gid_t)-1: none) that group and 0660. It replaces a socket on
 * which no process answers, left by a daemon that was killed. 0, or -errno with the reason in
 * error; -EADDRINUSE: another process listens there.
 */
int listener_open(struct listener *ret, const struct address *address, gid_t gid, char *error,
		  size_t n_error);
/* Closes it, and removes its path. */
void listener_close(struct listener *l);
