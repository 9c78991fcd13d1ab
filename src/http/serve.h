/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small HTTP server on a listening socket: GET and HEAD, one request for each connection,
 * answered at once or later. It limits the connections, the memory of each, and the time for a
 * request and its answer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct loop;
struct serve;
struct serve_exchange; /* a request and its answer */

#define SERVE_MAX_CONNECTIONS 32 /* more wait in the backlog of the socket */
#define SERVE_ASK_S	      5	 /* for a request to arrive */
#define SERVE_READ_S	      60 /* for its answer to be taken */

struct serve_callbacks {
	/* Answer it with serve_answer(), now or later. path is borrowed for the call. */
	void (*request)(void *ctx, struct serve_exchange *x, const char *path);
	/* An exchange ends, answered or not: x is no longer valid. */
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

/* A value of the query, borrowed until the exchange is answered; NULL: none. */
const char *serve_query(const struct serve_exchange *x, const char *name);

struct serve_answer {
	unsigned int status;
	const char *content_type;
	const char *file_name;	  /* name for a browser to save it; NULL: the browser shows it */
	unsigned int retry_after; /* seconds; 0: not said */
};
/* Takes body (malloc()ed, n bytes), even if the client is gone. Call once for an exchange. */
void serve_answer(struct serve_exchange *x, const struct serve_answer *a, char *body, size_t n);
/* Answers with a line of text; adds the newline. */
void serve_answer_text(struct serve_exchange *x, unsigned int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
