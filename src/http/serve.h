/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small HTTP server on a socket that listens already: GET and HEAD, one request a connection,
 * answered at once or later. Everything about it is bounded: connections, the memory of each, the
 * time that a client may take to ask and to read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct loop;
struct serve;
struct serve_exchange; /* a request and its answer */

#define SERVE_MAX_CONNECTIONS 32 /* more wait in the backlog of the socket */
#define SERVE_ASK_S	      5  /* for a request to arrive */
#define SERVE_READ_S	      60 /* for its answer to be taken */

struct serve_callbacks {
	/* Answers by serve_answer(), now or later. path is borrowed for the call. */
	void (*request)(void *ctx, struct serve_exchange *x, const char *path);
	/* An exchange ends, answered or not: x is not valid any more. */
	void (*done)(void *ctx, struct serve_exchange *x);
	void *ctx;
};

/*
 * Loads libmicrohttpd and serves at listen_fd, which becomes ours. 0; -ENOENT and others with a
 * message in error; -EOPNOTSUPP: built without libmicrohttpd.
 */
int serve_new(struct serve **ret, struct loop *loop, int listen_fd,
	      const struct serve_callbacks *callbacks, char *error, size_t n_error);
struct serve *serve_free(struct serve *s);
DEFINE_CLEANUP(struct serve *, serve_free)

/* A value of the query, borrowed until the exchange is answered; NULL: there is none. */
const char *serve_query(const struct serve_exchange *x, const char *name);

struct serve_answer {
	unsigned int status;
	const char *content_type;
	const char *file_name;	  /* as which a browser saves it; NULL: it shows it */
	unsigned int retry_after; /* seconds; 0: not said */
};
/* body (malloc()ed, n bytes) is taken over, also when the client has gone. Once an exchange. */
void serve_answer(struct serve_exchange *x, const struct serve_answer *a, char *body, size_t n);
/* A line of text, a newline added. */
void serve_answer_text(struct serve_exchange *x, unsigned int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
