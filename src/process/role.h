/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What all children do alike: take the set-up, give up privileges, wait for orders. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/sandbox.h"
#include "src/process/setup.h"
#include "src/process/status-page.h"

struct loop;

struct role {
	enum peer who;
	struct loop *loop;
	struct status_page *status;
	enum sandbox_mode seccomp; /* wanted */
	bool confined;
	bool no_network; /* none is in reach, not even by a socket */
	int files;	 /* rules, until role_listen(); negative: none */
};

/* A text of the set-up and its descriptor (-1 none); the descriptor becomes the callee's. */
typedef int (*role_text_fn)(void *ctx, const struct message *m, int fd);
/* A message on the control socket; fds are the callee's. */
typedef void (*role_message_fn)(void *ctx, const struct message *m, int fds[2]);

/*
 * From the first message to MESSAGE_START: setup (n bytes, beginning with struct setup_common) is
 * filled, privileges are dropped before anything else is read, texts go to text().
 * 0 or -errno (logged).
 */
int role_start(struct role *r, enum peer who, void *setup, size_t n, role_text_fn text, void *ctx);
/* Orders come from the broker alone: a SIGTERM to the whole service is its to answer. */
void role_ignore_signals(void);
/*
 * From here on the kernel refuses what the role does not need (sandbox.h). Read files, libraries
 * and the time zone before it, and what strangers wrote after it. role_listen() calls it if nobody
 * has.
 */
void role_confine(struct role *r);
/* Before that: what it opens by name later. A file, and a directory that it has open. */
void role_use_file(const struct role *r, const char *path);
void role_use_directory(const struct role *r, int fd);
/* And what it connects to: a server and a proxy (by their URLs), and any server at that port. */
void role_use_server(const struct role *r, const char *url);
void role_use_proxy(const struct role *r, const char *url);
void role_use_port(const struct role *r, uint16_t port);
/* Watches the control socket, as the last step of a start. 0 or -errno. */
int role_listen(struct role *r, role_message_fn message, void *ctx);

/* Reads up to max messages from sock, or until it is empty: calls fn for each. 0; -EPIPE: the peer
 * is gone; -EMSGSIZE: there was no room for a descriptor of its; -EBADMSG: it talks nonsense; or
 * another -errno. */
int role_read_messages(int sock, int max, role_message_fn fn, void *ctx);
/* As many as one turn of a loop has time for where each takes little. */
int role_drain_socket(int sock, role_message_fn fn, void *ctx);
/* What the error of these two means, for the log. */
const char *role_receive_error(int r);

/*
 * Tells the broker which file to blame if this process dies or hangs: the status page names the
 * file whose bytes are being read. It also tells one piece of work from the next, so that the
 * broker can measure each.
 */
void role_job_begin(
	struct role *r); /* work begins, on no file yet; also in the place of other work */
/* What follows, until the next of these calls, reads that file. */
void role_job_read(struct role *r, const struct file_identity *id, const char *path);
void role_job_end(struct role *r);

int role_profiler_main(void);
int role_symbolizer_main(void);
int role_exporter_main(void);
int role_screen_main(void);
int role_metrics_main(void);
int role_fetcher_main(void);
