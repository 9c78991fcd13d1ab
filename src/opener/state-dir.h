/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory for files of an unprivileged child; the broker makes and opens it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_owner {
	uint32_t uid, gid; /* (uint32_t)-1: our own */
	uint32_t former;   /* the former owner, whose files get the new owner; uid or -1: none */
	bool of_service;   /* systemd made the directory, or one above it, for us: root, too, is a
			    * former owner */
};

/*
 * Opens the directory, and creates it with its parents if it does not exist: mode 0700. It is
 * locked against a second broker as long as the descriptor or a copy of it is open; shared: only
 * against brokers that do not share it. Refuses a directory of another user, or one with files of
 * root. Returns the descriptor, which the caller owns, or -errno with the reason in error.
 */
int state_dir_open(const char *path, const struct state_owner *owner, bool shared, char *error,
		   size_t n_error);
