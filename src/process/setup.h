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

/* Room for descriptors that a child does not count: sockets, outputs, and those in transit or open
 * for a moment. */
#define SETUP_OTHER_DESCRIPTORS 512

struct setup_common {
	struct privileges privileges;
	uint32_t log_level; /* enum log_level */
	uint32_t seccomp;   /* enum sandbox_mode */
	bool landlock;	    /* if the kernel has it */
};

/* Each sends one message of a set-up through a control socket: 0 or -errno. The descriptor stays
 * the caller's; -1: none. A text of NULL is not sent. */
int setup_send(int control, const void *setup, size_t n, int status_fd);
int setup_send_text(int control, enum text_kind kind, const char *text, int fd);
int setup_send_start(int control);

/*
 * Sends the messages of one set-up in their order. After the first failure it sends no more;
 * result is 0 or that -errno. A caller may set it to an error of its own. The socket limits how
 * long each message waits, and the deadline all together: after it, the result is -ETIMEDOUT.
 */
struct setup_sender {
	int control, result;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

struct setup_sender setup_begin(int control, const void *setup, size_t n, int status_fd);
/* Has nothing failed, and is there time left? For messages that are sent in another way. */
bool setup_may_send(struct setup_sender *to);
/* Neither sends a text of NULL. */
void setup_put_text(struct setup_sender *to, enum text_kind kind, const char *text);
void setup_put_file(struct setup_sender *to, enum text_kind kind, const char *text, int fd);
/* Sends the proxies in the environment, for a child with the network. */
void setup_put_proxies(struct setup_sender *to);
/* A message of another type; the descriptors stay the caller's. */
void setup_put_message(struct setup_sender *to, const struct message *m, const int *fds,
		       size_t n_fds);
/* Sends MESSAGE_START. Returns the result. More messages may follow. */
int setup_finish(struct setup_sender *to);

/* Chooses the user of the children: for root the named user, or nobody if that does not exist; for
 * others the broker's own. Sets no limits. true: it is the named user. */
bool setup_choose_user(struct privileges *ret, const char *name);
/*
 * Chooses the user of the children with the network: for root the named user, if it exists, so that
 * an attacker from the network cannot touch the children that hold the stacks; else that of user.
 * true: it is the named user.
 */
bool setup_choose_network_user(struct privileges *ret, const struct privileges *user,
			       const char *name);
