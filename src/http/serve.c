/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd without threads of its own: our loop watches its epoll descriptor. A request that
 * is answered later suspends its connection, and libmicrohttpd ignores that until it is resumed; so
 * a timer checks every second whether the client is still there. The same timer closes connections
 * by age: a client could avoid a time-out on inactivity by one byte every few seconds.
 *
 * A web page can make a browser send requests here under the page's own host name (DNS rebinding)
 * and read the answer. So a request through a port must have an address or localhost as its host.
 */
#include "config.h"

#include "src/http/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/loop.h"

#ifdef HAVE_MICROHTTPD

#include "src/http/microhttpd.h"

#define CONNECTION_BYTES (16 << 10) /* a request with all its headers */
#define TICK_NS		 NSEC_PER_SEC

enum serve_state {
	STATE_NEW,     /* the head has arrived */
	STATE_ASKED,   /* the callback runs */
	STATE_WAITING, /* suspended */
	STATE_READY,   /* response is set */
};

struct serve_exchange {
	struct serve *serve;
	struct MHD_Connection *connection;
	struct MHD_Response *response;
	unsigned int status;
	enum serve_state state;
};

struct serve_client {
	struct MHD_Connection *connection; /* NULL: free */
	struct serve_exchange *exchange;   /* NULL: none under way */
	uint64_t deadline_ns;
};

struct serve {
	struct loop *loop;
	struct serve_callbacks callbacks;
	struct microhttpd_api mhd;
	struct MHD_Daemon *daemon;
	int epoll_fd, run_timer;
	bool is_port, stopping;
	bool closed; /* a connection was closed since the last run */
	struct serve_client clients[SERVE_MAX_CONNECTIONS];
};

static struct serve_client *client_of(struct serve *s, const struct MHD_Connection *connection)
{
	for (size_t i = 0; i < SERVE_MAX_CONNECTIONS; i++) {
		if (s->clients[i].connection == connection)
			return &s->clients[i];
	}
	return NULL;
}

static void set_deadline(struct serve *s, const struct MHD_Connection *connection, uint64_t seconds)
{
	struct serve_client *c = client_of(s, connection);

	if (c)
		c->deadline_ns = clock_monotonic_ns() + seconds * NSEC_PER_SEC;
}

static void run(struct serve *s)
{
	unsigned long long ms;

	(void)s->mhd.run(s->daemon);
	if (s->mhd.get_timeout(s->daemon, &ms) == MHD_YES)
		loop_set_timer(s->loop, s->run_timer, ms * NSEC_PER_MSEC);
	/* At its limit libmicrohttpd stops listening, and checks the limit only at the start of a
	 * run: without another run it would never accept a client again. */
	if (s->closed)
		loop_set_timer(s->loop, s->run_timer, 0);
	s->closed = false;
}

static void on_run_timer(void *ctx)
{
	run(ctx);
}

static void on_epoll(void *ctx, int fd, uint32_t events)
{
	run(ctx);
}

/* ---- Answers ---- */

static void set_response(struct serve_exchange *x, const struct serve_answer *a, char *body,
			 size_t n)
{
	const struct microhttpd_api *mhd = &x->serve->mhd;
	struct MHD_Response *r = mhd->create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE);
	char text[128];

	if (!r) {
		free(body);
		return;
	}
	(void)mhd->add_response_header(r, "Content-Type", a->content_type);
	(void)mhd->add_response_header(r, "X-Content-Type-Options", "nosniff");
	(void)mhd->add_response_header(r, "Cache-Control", "no-store");
	(void)mhd->add_response_header(r, "Connection", "close");
	if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)mhd->add_response_header(r, "Allow", "GET, HEAD");
	if (a->file_name) {
		(void)snprintf(text, sizeof(text), "attachment; filename=\"%s\"", a->file_name);
		(void)mhd->add_response_header(r, "Content-Disposition", text);
	}
	if (a->retry_after) {
		(void)snprintf(text, sizeof(text), "%u", a->retry_after);
		(void)mhd->add_response_header(r, "Retry-After", text);
	}
	x->response = r;
	x->status = a->status;
}

void serve_answer(struct serve_exchange *x, const struct serve_answer *a, char *body, size_t n)
{
	struct serve *s = x->serve;

	set_response(x, a, body, n);
	if (x->state == STATE_WAITING) {
		set_deadline(s, x->connection, SERVE_READ_S);
		s->mhd.resume_connection(x->connection);
		loop_set_timer(s->loop, s->run_timer, 0);
	}
	x->state = STATE_READY;
}

void serve_answer_text(struct serve_exchange *x, unsigned int status, const char *format, ...)
{
	const struct serve_answer a = {.status = status,
				       .content_type = "text/plain; charset=utf-8"};
	char *text = NULL, *line = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n >= 0)
		n = asprintf(&line, "%s\n", text);
	serve_answer(x, &a, n >= 0 ? line : NULL, n >= 0 ? (size_t)n : 0);
	free(text);
}

const char *serve_query(const struct serve_exchange *x, const char *name)
{
	return x->serve->mhd.lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* ---- Requests ---- */

/* Is it "localhost", "127.0.0.1:9464", "[::1]" or the like? */
static bool is_address(const char *host)
{
	char name[INET6_ADDRSTRLEN + 2];
	struct in6_addr address;
	const char *end;
	size_t n;

	if (host[0] == '[')
		end = strchr(++host, ']');
	else
		end = host + strcspn(host, ":");
	n = end ? (size_t)(end - host) : sizeof(name);
	if (n >= sizeof(name))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1 ||
	       inet_pton(AF_INET6, name, &address) == 1;
}

static const char *header(const struct serve_exchange *x, const char *name)
{
	return x->serve->mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* Any page can make a browser send a request. The page cannot read the answer, but the request has
 * been executed. Browsers before 2023 send only the origin, and with some requests not even
 * that. */
static bool is_of_another_site(const struct serve_exchange *x, const char *host)
{
	const char *site = header(x, "Sec-Fetch-Site"), *origin = header(x, "Origin"), *name;

	if (site)
		return strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
	name = origin ? strstr(origin, "://") : NULL;
	return origin && (!name || !host || strcmp(name + 3, host) != 0);
}

static void ask(struct serve_exchange *x, const char *path, const char *method)
{
	struct serve *s = x->serve;
	const char *host = header(x, "Host");

	x->state = STATE_ASKED;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		serve_answer_text(x, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed");
	else if (s->is_port && host && !is_address(host))
		serve_answer_text(x, MHD_HTTP_FORBIDDEN,
				  "the Host header must be localhost or an address; a proxy in "
				  "front of it must set it");
	else if (s->is_port && is_of_another_site(x, host))
		serve_answer_text(x, MHD_HTTP_FORBIDDEN, "pages of other web sites are not served");
	else
		s->callbacks.request(s->callbacks.ctx, x, path);
}

/* Called when the head has arrived, at the end of the request, and after each resumption. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *body,
				  size_t *n_body, void **state)
{
	struct serve_exchange *x = *state;
	struct serve *s = ctx;

	if (!x) {
		struct serve_client *c = client_of(s, connection);

		x = c ? calloc(1, sizeof(*x)) : NULL;
		if (!x)
			return MHD_NO;
		*x = (struct serve_exchange){.serve = s, .connection = connection};
		*state = c->exchange = x;
		/* A body is never read. */
		if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
			return MHD_YES;
	}
	*n_body = 0;
	if (x->state == STATE_NEW)
		ask(x, path, method);
	if (x->state == STATE_ASKED) {
		x->state = STATE_WAITING;
		s->mhd.suspend_connection(connection);
		return MHD_YES;
	}
	if (x->state == STATE_WAITING)
		return MHD_YES;
	set_deadline(s, connection, SERVE_READ_S);
	return x->response ? s->mhd.queue_response(connection, x->status, x->response) : MHD_NO;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct serve_exchange *x = *state;
	struct serve *s = ctx;
	struct serve_client *c = client_of(s, connection);

	if (!x)
		return;
	*state = NULL;
	if (c)
		c->exchange = NULL;
	s->callbacks.done(s->callbacks.ctx, x);
	if (x->response)
		s->mhd.destroy_response(x->response);
	free(x);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct serve *s = ctx;
	bool begins = code == MHD_CONNECTION_NOTIFY_STARTED;
	struct serve_client *c = client_of(s, begins ? NULL : connection);

	s->closed |= !begins;
	if (!c)
		return;
	*c = (struct serve_client){.connection = begins ? connection : NULL};
	if (begins)
		set_deadline(s, connection, SERVE_ASK_S);
}

static void look_after(struct serve *s, struct serve_client *c, uint64_t now)
{
	const union MHD_ConnectionInfo *info =
		s->mhd.get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	bool waits = c->exchange && c->exchange->state == STATE_WAITING;
	struct pollfd p = {.events = POLLRDHUP};

	if (!info)
		return;
	p.fd = info->connect_fd;
	if (!waits && now >= c->deadline_ns) {
		(void)shutdown(p.fd, SHUT_RDWR);
	} else if (waits && poll(&p, 1, 0) > 0) {
		/* Nobody reads this, but it ends the exchange in the normal way. */
		serve_answer_text(c->exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "gone");
	}
}

static void on_tick(void *ctx)
{
	struct serve *s = ctx;
	uint64_t now = clock_monotonic_ns();

	for (size_t i = 0; i < SERVE_MAX_CONNECTIONS; i++) {
		if (s->clients[i].connection)
			look_after(s, &s->clients[i], now);
	}
}

/* ---- Life ---- */

static int start(struct serve *s, int listen_fd)
{
	const union MHD_DaemonInfo *info;

	s->daemon = s->mhd.start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
		MHD_OPTION_LISTEN_SOCKET, (MHD_socket)listen_fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)SERVE_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	info = s->daemon ? s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return -EIO;
	s->epoll_fd = info->epoll_fd;
	if ((s->run_timer = loop_add_timer(s->loop, UINT64_MAX, 0, on_run_timer, s)) < 0)
		return s->run_timer;
	(void)loop_add_timer(s->loop, TICK_NS, TICK_NS, on_tick, s);
	return loop_add_fd(s->loop, s->epoll_fd, EPOLLIN, on_epoll, s);
}

int serve_new(struct serve **ret, struct loop *loop, int listen_fd,
	      const struct serve_callbacks *callbacks, char *error, size_t n_error)
{
	_cleanup_(serve_freep) struct serve *s = calloc(1, sizeof(*s));
	int family = AF_UNSPEC, r;
	socklen_t n = sizeof(family);

	if (!s) {
		(void)close_fd(listen_fd);
		return -ENOMEM;
	}
	s->loop = loop;
	s->callbacks = *callbacks;
	s->epoll_fd = -EBADF;
	s->is_port =
		getsockopt(listen_fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0 || family != AF_UNIX;
	r = microhttpd_api_load(&s->mhd, error, n_error);
	if (r < 0) {
		(void)close_fd(listen_fd);
		return r;
	}
	r = start(s, listen_fd);
	if (r < 0) {
		(void)snprintf(error, n_error, "libmicrohttpd does not start: %s", strerror(-r));
		return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

struct serve *serve_free(struct serve *s)
{
	if (!s)
		return NULL;
	/* The daemon must not stop with suspended connections. */
	for (size_t i = 0; i < SERVE_MAX_CONNECTIONS; i++) {
		struct serve_exchange *x = s->clients[i].exchange;

		if (x && x->state == STATE_WAITING)
			serve_answer_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "perfwalk is stopping");
	}
	if (s->daemon) {
		(void)s->mhd.run(s->daemon);
		loop_remove_fd(s->loop, s->epoll_fd);
		s->mhd.stop_daemon(s->daemon);
	}
	free(s);
	return NULL;
}

#else

int serve_new(struct serve **ret, struct loop *loop, int listen_fd,
	      const struct serve_callbacks *callbacks, char *error, size_t n_error)
{
	(void)close_fd(listen_fd);
	(void)snprintf(error, n_error, "this perfwalk was built without libmicrohttpd");
	return -EOPNOTSUPP;
}

struct serve *serve_free(struct serve *s)
{
	return NULL;
}

const char *serve_query(const struct serve_exchange *x, const char *name)
{
	return NULL;
}

void serve_answer(struct serve_exchange *x, const struct serve_answer *a, char *body, size_t n)
{
	free(body);
}

void serve_answer_text(struct serve_exchange *x, unsigned int status, const char *format, ...) {}

#endif
