/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A socket that clients connect to, made by the broker: who serves it may be a child. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/address.h"

struct listener {
	int fd; /* -EBADF: none */
	struct address address;
	bool bound; /* a path is there that is ours to remove */
};
#define LISTENER_NONE                                                                              \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/*
 * Listens at the address, close-on-exec and non-blocking. A path gets its directory, the mode 0600,
 * and with a gid ((gid_t)-1: none) that group and 0660; a socket there that nobody answers on was
 * left behind by a daemon that was killed, and is replaced. 0, or -errno with the reason in error:
 * -EADDRINUSE when somebody listens there.
 */
int listener_open(struct listener *ret, const struct address *address, gid_t gid, char *error,
		  size_t n_error);
/* Closes it, and removes its path. */
void listener_close(struct listener *l);
