/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the broker tells each child at its start: the blob of MESSAGE_SETUP, one struct a role in
 * the setup.h of its room, which begins with what all are told.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/privileges.h"

/* Sockets, outputs, what is on its way or open for a moment: beside what a child counts. */
#define SETUP_OTHER_DESCRIPTORS 512

struct setup_common {
	struct privileges privileges;
	uint32_t log_level; /* enum log_level */
	uint32_t seccomp;   /* enum sandbox_mode */
	bool landlock;	    /* where the kernel has it */
};

/*
 * Sets the limits of a role that no setting changes, from one table: tasks, open files, the size of
 * a file. The caller adds those that the config decides.
 */
void setup_limit(struct privileges *p, enum peer who);

/* Each sends one message of a set-up down a control socket: 0 or -errno. The descriptor stays the
 * caller's; -1: none. A text that is NULL is not sent. */
int setup_send(int control, const void *setup, size_t n, int status_fd);
int setup_send_text(int control, enum text_kind kind, const char *text, int fd);
int setup_send_start(int control);
/* Who the children are: as root the named user, else nobody; else who we are. No limits yet. true:
 * it is the named one, of its own. */
bool setup_choose_user(struct privileges *ret, const char *name);
/*
 * The user of the children with the network: as root the named one, if it exists, so that an
 * attacker from the network stays away from the children that hold the stacks; else the same as
 * user. true: it is the named one.
 */
bool setup_choose_network_user(struct privileges *ret, const struct privileges *user,
			       const char *name);
