/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a request to the HTTP server of the metrics process, over a real socket: its
 * target, headers, host and query. The first byte says whether it comes through a port, where the
 * host is checked. libmicrohttpd itself is not built for this; what we make of it is.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/http/serve.h"
#include "tests/fuzz/input.h"
#include "util/loop.h"
#include "util/text.h"

#define WAIT_NS (5 * 1000 * 1000)

struct client {
	struct loop *loop;
	int fd;
	char answer[4096];
	size_t n_answer;
};

static bool no_server;

static void on_request(void *ctx, struct serve_exchange *x, const char *path)
{
	const char *seconds = serve_query(x, "seconds");
	uint64_t n = 0;

	input_touch_text(path);
	input_touch_text(seconds);
	if (seconds && text_parse_u64(seconds, 1, 600, &n) < 0)
		serve_answer_text(x, 400, "seconds: expected a whole number");
	else
		serve_answer_text(x, 200, "%s", path);
}

static void on_done(void *ctx, struct serve_exchange *x) {}

static void on_readable(void *ctx, int fd, uint32_t events)
{
	struct client *c = ctx;
	char *to = c->answer + c->n_answer;
	ssize_t n = recv(fd, to, sizeof(c->answer) - 1 - c->n_answer, MSG_DONTWAIT);

	if (n > 0)
		c->n_answer += (size_t)n;
	else
		loop_exit(c->loop, 0);
}

/* It waits for the rest of a request, and would for seconds. */
static void on_timer(void *ctx)
{
	loop_exit(ctx, 0);
}

/* A listening socket, and a connected one: of the loopback, or of a path that has no name. */
static bool make_sockets(bool port, int *ret_listen, int *ret_client)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const struct linger reset = {1, 0};
	struct sockaddr_storage to;
	socklen_t n = sizeof(to);

	*ret_listen = socket(port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*ret_client = socket(port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(*ret_listen, port ? (struct sockaddr *)&in : (struct sockaddr *)&un,
		 port ? sizeof(in) : sizeof(sa_family_t)) < 0 ||
	    listen(*ret_listen, 4) < 0 ||
	    getsockname(*ret_listen, (struct sockaddr *)&to, &n) < 0 ||
	    connect(*ret_client, (struct sockaddr *)&to, n) < 0) {
		(void)close(*ret_listen);
		(void)close(*ret_client);
		return false;
	}
	/* Not all connections leave their port at once: the server may close first. */
	(void)setsockopt(*ret_client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct serve_callbacks callbacks = {.request = on_request, .done = on_done};
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(serve_freep) struct serve *s = NULL;
	struct client c = {0};
	char error[256];
	int listen_fd;

	if (n < 2 || n > 8192)
		return 0;
	if (loop_new(&loop) < 0)
		abort();
	c.loop = loop;
	/* A host may have no port left for a minute. */
	if (!make_sockets(data[0] & 1, &listen_fd, &c.fd) &&
	    !make_sockets(false, &listen_fd, &c.fd))
		abort();
	no_server = serve_new(&s, loop, listen_fd, &callbacks, error, sizeof(error)) < 0;
	if (!no_server) {
		if (send(c.fd, data + 1, n - 1, MSG_NOSIGNAL) < 0 ||
		    send(c.fd, "\r\n\r\n", 4, MSG_NOSIGNAL) < 0 || shutdown(c.fd, SHUT_WR) < 0 ||
		    loop_add_fd(loop, c.fd, EPOLLIN, on_readable, &c) < 0 ||
		    loop_add_timer(loop, WAIT_NS, 0, on_timer, loop) < 0)
			abort();
		(void)loop_run(loop);
		loop_remove_fd(loop, c.fd);
	}
	(void)close(c.fd);
	if (c.n_answer && strncmp(c.answer, "HTTP/1.", 7) != 0)
		abort();
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	int r = replay_directory(FUZZ_REPLAY, 1, 8, 50);

	if (no_server)
		printf("no libmicrohttpd here\n");
	return no_server ? 77 : r;
}
#endif
