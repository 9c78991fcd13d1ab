/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory in which an unprivileged child keeps files, made and handed over by the broker. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_owner {
	uint32_t uid, gid; /* (uint32_t)-1: our own */
	uint32_t former;   /* whose directory and files become the owner's; uid or -1: nobody's */
};

/*
 * Opens the directory, made with its parents where it does not exist: mode 0700, locked against a
 * second broker as long as the descriptor or a copy of it is open; shared: only against those that
 * do not share it. A directory that is somebody else's, or that holds files of root, is left alone.
 * The descriptor; -errno with the reason in error.
 */
int state_dir_open(const char *path, const struct state_owner *owner, bool shared, char *error,
		   size_t n_error);
