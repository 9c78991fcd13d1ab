/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The set-up that the broker sends to each child: the blob of MESSAGE_SETUP. Each role has a struct
 * in the setup.h of its room, which begins with the part that all share.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/privileges.h"

/*
 * Descriptors that a child does not count: sockets, outputs, those in transit or open for a moment.
 */
#define SETUP_OTHER_DESCRIPTORS 512

struct setup_common {
	struct privileges privileges;
	uint32_t log_level; /* enum log_level */
	uint32_t seccomp;   /* enum sandbox_mode */
	bool landlock;	    /* if the kernel has it */
};

/*
 * Sets the fixed limits of a role: tasks, open files, the size of a file. The caller adds those
 * from the config.
 */
void setup_limit(struct privileges *p, enum peer who);

/* Each sends one message of a set-up through a control socket: 0 or -errno. The descriptor stays
 * the caller's; -1: none. A text of NULL is not sent. */
int setup_send(int control, const void *setup, size_t n, int status_fd);
int setup_send_text(int control, enum text_kind kind, const char *text, int fd);
int setup_send_start(int control);

/*
 * The messages of one set-up in their order. After the first that fails no more are sent, and
 * result says why: 0 or -errno. A caller that has a failure of its own sets it there.
 */
struct setup_sender {
	int control, result;
};

struct setup_sender setup_begin(int control, const void *setup, size_t n, int status_fd);
/* A text of NULL is not sent. */
void setup_put_text(struct setup_sender *to, enum text_kind kind, const char *text);
void setup_put_file(struct setup_sender *to, enum text_kind kind, const char *text, int fd);
/* The proxies in the environment, for a child with the network. */
void setup_put_proxies(struct setup_sender *to);
/* Tells the child to start. Returns the result. */
int setup_finish(struct setup_sender *to);

/* Chooses the user of the children: as root the named user, or nobody if that does not exist; else
 * our own. Sets no limits. true: it is the named user. */
bool setup_choose_user(struct privileges *ret, const char *name);
/*
 * Chooses the user of the children with the network: as root the named one if it exists, so that an
 * attacker from the network cannot touch the children that hold the stacks; else the same as user.
 * true: it is the named one.
 */
bool setup_choose_network_user(struct privileges *ret, const struct privileges *user,
			       const char *name);
