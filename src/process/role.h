/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The common part of all children: take the set-up, drop privileges, wait for orders. */
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
	bool no_network; /* it is in an empty network namespace */
	int files;	 /* rules of Landlock, until role_confine(); negative: none */
	/* As given to role_listen(). */
	void (*message)(void *ctx, const struct message *m, int fds[2]);
	void *ctx;
};

/* Takes a text of the set-up and its descriptor (-1: none), which the callee owns. 0 or -errno. */
typedef int (*role_text_fn)(void *ctx, const struct message *m, int fd);
/* A message on the control socket; the callee owns fds. */
typedef void (*role_message_fn)(void *ctx, const struct message *m, int fds[2]);

/*
 * Receives the set-up, up to MESSAGE_START: fills setup (n bytes, beginning with struct
 * setup_common), drops privileges before it reads anything else, passes texts to text(). 0 or
 * -errno (logged).
 */
int role_start(struct role *r, enum peer who, void *setup, size_t n, role_text_fn text, void *ctx);
/* Ignores SIGTERM and the like: orders come from the broker, which answers a signal to the whole
 * service. */
void role_ignore_signals(void);
/*
 * From here on the kernel refuses system calls and files that the role does not need (sandbox.h).
 * Load files, libraries and the time zone before it, and read untrusted data after it.
 * role_listen() calls it if you have not.
 */
void role_confine(struct role *r);
/* Call these before role_confine(). They allow the role to open a file by name, or files in an open
 * directory. */
void role_use_file(const struct role *r, const char *path);
void role_use_directory(const struct role *r, int fd);
/* They allow it to connect to a server or a proxy (by URL), or to any server at that port. */
void role_use_server(const struct role *r, const char *url);
void role_use_proxy(const struct role *r, const char *url);
void role_use_port(const struct role *r, uint16_t port);
/* Watches the control socket, as the last step of a start. 0 or -errno. */
int role_listen(struct role *r, role_message_fn message, void *ctx);

/* Reads up to max messages from sock, or until it is empty: calls fn for each. 0; -EPIPE: the peer
 * is gone; -EMSGSIZE: no room for one of its descriptors; -EBADMSG: an invalid message; or another
 * -errno. */
int role_read_messages(int sock, int max, role_message_fn fn, void *ctx);
/* role_read_messages() with a fixed max, for messages that are quick to handle. */
int role_drain_socket(int sock, role_message_fn fn, void *ctx);
/* The meaning of an error of these two functions, for the log. Static. */
const char *role_receive_error(int r);

/*
 * Jobs: the status page names the file that the process reads, so that the broker blames that file
 * if the process dies or hangs, and separates the pieces of work, so that the broker can limit the
 * time of each.
 */
/* Ends the previous job and begins one, with no file yet. */
void role_job_begin(struct role *r);
/* The process reads that file from now on, until the next call of one of these functions. */
void role_job_read(struct role *r, const struct file_identity *id, const char *path);
void role_job_end(struct role *r);

/* The main functions of the children. Each returns the process's exit status. */
int role_profiler_main(void);
int role_symbolizer_main(void);
int role_exporter_main(void);
int role_screen_main(void);
int role_metrics_main(void);
int role_fetcher_main(void);
int role_reader_main(void);
/* Of the judge (judging.h), which is no role. */
int judge_main(void);
