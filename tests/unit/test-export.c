/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter against a real HTTP server: a forked process with one child for each connection,
 * which answers by script. The path of a request (/N/...) says which script, shared memory says
 * which attempt it is and keeps what was asked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "src/exporter/internal.h"
#include "proto/wire-write.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define N_SCRIPTS   64
#define N_STEPS	    4
#define BODY_MAX    (4u << 20)
#define LIMIT_BYTES 50000
#define NOW	    clock_monotonic_ns()
#define PATIENCE_MS 60000 /* on a busy host; nobody waits so long who need not */

/* --- the server ---------------------------------------------------------------------------- */

enum action {
	LAST,	      /* the step before, for ever */
	REPLY,	      /* status, headers, body */
	REPLY_DATE,   /* REPLY with Retry-After: now + 2 s as a date */
	REPLY_UNREAD, /* REPLY without having read the request's body, then close */
	PARTIAL_TEXT, /* a response that is cut by a reset */
	CLOSE,	      /* nothing at all */
	STALL,	      /* a byte of header at a time, for ever */
	SILENT,	      /* no byte, for ever */
	ENDLESS,      /* a body without end */
	ENDLESS_HEADERS,
	BOMB,	  /* 64 MiB of zeros, compressed */
	BAD_GZIP, /* says gzip, is none */
	GARBAGE,  /* not HTTP */
	POISON,	  /* 503 for bodies that begin with "poison", else 200 */
	LIMIT,	  /* 413 for bodies beyond LIMIT_BYTES, which are not read, else 200 */
};

struct step {
	enum action action;
	int status;
	const char *headers; /* each with its \r\n */
	const char *body;
	size_t n_body; /* 0: strlen(body) */
};

#define BODY(s) (s), sizeof(s) - 1

struct seen {
	unsigned int n_requests;
	uint64_t at_ns[16];
	char head[4096]; /* of the last request */
	uint32_t n_body;
	uint8_t body[BODY_MAX];
};

struct shared {
	unsigned int n_connections;
	struct step scripts[N_SCRIPTS][N_STEPS]; /* written before the server starts */
	struct seen seen[N_SCRIPTS];
};

static struct shared *shared;

static void send_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent <= 0)
			_exit(0);
		p += sent;
		n -= (size_t)sent;
	}
}

static void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

static void reply(int fd, const struct step *s, const char *more)
{
	size_t n = s->n_body ? s->n_body : s->body ? strlen(s->body) : 0;
	char head[1024];

	(void)snprintf(head, sizeof(head), "HTTP/1.1 %d Text\r\nContent-Length: %zu\r\n%s%s\r\n",
		       s->status, n, s->headers ? s->headers : "", more);
	send_text(fd, head);
	send_all(fd, s->body, n);
}

/* Ends the connection with a reset instead of an orderly end. */
static void reset(int fd)
{
	struct linger l = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	(void)close(fd);
	_exit(0);
}

static void send_bomb(int fd)
{
	static uint8_t in[1 << 16], out[1 << 16];
	z_stream z = {0};

	send_text(fd, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n");
	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		_exit(1);
	for (int i = 0; i <= 1024; i++) {
		z.next_in = in;
		z.avail_in = i < 1024 ? sizeof(in) : 0;
		do {
			z.next_out = out;
			z.avail_out = sizeof(out);
			(void)deflate(&z, i < 1024 ? Z_NO_FLUSH : Z_FINISH);
			send_all(fd, out, sizeof(out) - z.avail_out);
		} while (z.avail_out == 0);
	}
	_exit(0);
}

static bool inflate_all(const uint8_t *in, size_t n, uint8_t *out, size_t size, size_t *ret_n)
{
	z_stream z = {.next_in = (uint8_t *)(uintptr_t)in,
		      .avail_in = (uInt)n,
		      .next_out = out,
		      .avail_out = (uInt)size};
	bool ok = inflateInit2(&z, 15 + 16) == Z_OK && inflate(&z, Z_FINISH) == Z_STREAM_END;

	*ret_n = z.total_out;
	(void)inflateEnd(&z);
	return ok;
}

static void act(int fd, const struct step *s, const struct seen *seen)
{
	static const struct step fine = {REPLY, 200, NULL, NULL, 0};
	static char block[1 << 14];
	char more[128] = "", date[64];
	time_t when = time(NULL) + 2;
	uint8_t start[4096];
	size_t n;

	switch (s->action) {
	case REPLY:
		reply(fd, s, "");
		return;
	case REPLY_DATE:
		(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&when));
		(void)snprintf(more, sizeof(more), "RETRY-AFTER:  %s \r\n", date);
		reply(fd, s, more);
		return;
	case REPLY_UNREAD:
		reply(fd, s, "Connection: close\r\n");
		_exit(0);
	case PARTIAL_TEXT:
		send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789");
		reset(fd);
		return;
	case CLOSE:
		_exit(0);
	case STALL:
		for (send_text(fd, "HTTP/1.1 200 OK\r\nX: ");; (void)usleep(20000))
			send_text(fd, "x");
	case SILENT:
		for (;;)
			(void)pause();
	case ENDLESS:
		memset(block, 'x', sizeof(block));
		for (send_text(fd, "HTTP/1.1 200 OK\r\n\r\n");;)
			send_all(fd, block, sizeof(block));
	case ENDLESS_HEADERS:
		for (send_text(fd, "HTTP/1.1 200 OK\r\n");;)
			send_text(fd, "X-Something: of no interest, and there is more where it "
				      "came from\r\n");
	case BOMB:
		send_bomb(fd);
		return;
	case BAD_GZIP:
		send_text(fd,
			  "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\n"
			  "nonsense");
		return;
	case GARBAGE:
		send_text(fd, "SSH-2.0-OpenSSH_9.2\r\n");
		_exit(0);
	case POISON:
		(void)inflate_all(seen->body, seen->n_body, start, sizeof(start), &n);
		reply(fd, memcmp(start, "poison", 6) == 0 ? s : &fine, "");
		return;
	case LIMIT:
		reply(fd, seen->n_body > LIMIT_BYTES ? s : &fine, "");
		return;
	case LAST:
		break;
	}
	_exit(1);
}

static const struct step *next_step(const struct step *script, unsigned int attempt)
{
	while (attempt > 0 && (attempt >= N_STEPS || script[attempt].action == LAST))
		attempt--;
	return &script[attempt];
}

/* One request. Ends the process when the client is gone. */
static void serve_one(int fd)
{
	static char head[4096];
	size_t n = 0, n_body = 0;
	const char *length, *path;
	const struct step *step;
	struct seen *seen;
	unsigned int attempt;
	long script;

	while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
		if (n + 1 >= sizeof(head) || read(fd, head + n, 1) != 1)
			_exit(0);
		n++;
	}
	head[n] = '\0';
	path = strchr(head, ' ');
	script = path ? strtol(path + 2, NULL, 10) : -1;
	if (script < 0 || script >= N_SCRIPTS)
		_exit(0);
	seen = &shared->seen[script];
	attempt = __atomic_fetch_add(&seen->n_requests, 1, __ATOMIC_SEQ_CST);
	if (attempt < 16)
		seen->at_ns[attempt] = clock_monotonic_ns();
	step = next_step(shared->scripts[script], attempt);
	length = strstr(head, "Content-Length: ");
	if (length)
		n_body = strtoul(length + 16, NULL, 10);
	if (step->action == REPLY_UNREAD)
		n_body = 0;
	for (size_t at = 0; at < n_body;) {
		ssize_t got = n_body <= BODY_MAX ? read(fd, seen->body + at, n_body - at) : -1;

		if (got <= 0)
			_exit(0);
		at += (size_t)got;
	}
	seen->n_body = (uint32_t)n_body;
	memcpy(seen->head, head, n + 1);
	act(fd, step, seen);
}

static int listen_on(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(*port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), ==, 0);
	CHECK_INT(bind(fd, (struct sockaddr *)&a, n), ==, 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
	*port = ntohs(a.sin_port);
	CHECK_INT(listen(fd, 128), ==, 0);
	return fd;
}

/* For a server that comes later: below those that the kernel gives to connections. */
static uint16_t unused_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint16_t port = (uint16_t)(10000 + getpid() % 20000);

	for (;; port++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

		CHECK_INT(port, <, 32768);
		a.sin_port = htons(port);
		r = bind(fd, (struct sockaddr *)&a, sizeof(a));
		(void)close(fd);
		if (r == 0)
			return port;
	}
}

/* port 0: any; it is told. Scripts are set before. */
static pid_t server_start(uint16_t *port)
{
	int listener = listen_on(port);
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (pid > 0) {
		(void)close(listener);
		return pid;
	}
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		(void)__atomic_fetch_add(&shared->n_connections, 1, __ATOMIC_SEQ_CST);
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
			for (;;)
				serve_one(fd);
		}
		(void)close(fd);
	}
}

static void server_stop(pid_t pid)
{
	(void)kill(-pid, SIGKILL);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void scripts_clear(void)
{
	memset(shared, 0, offsetof(struct shared, seen));
	for (size_t i = 0; i < N_SCRIPTS; i++) {
		shared->seen[i].n_requests = 0;
		shared->seen[i].n_body = 0;
	}
}

/* --- helpers ------------------------------------------------------------------------------- */

static int make_fd(const void *data, size_t n)
{
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, data, n), ==, n);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), ==, 0);
	return fd;
}

static int make_text_fd(const char *text)
{
	return make_fd(text, strlen(text));
}

static unsigned int n_done;
static uint64_t done_ids[64];

static void on_done(void *ctx, uint64_t id, uint64_t n_samples)
{
	CHECK(ctx == &n_done);
	CHECK_INT(n_done, <, 64);
	done_ids[n_done++] = id;
}

static struct exporter *exporter_of(const struct export_destination *d, size_t n)
{
	struct exporter *e = NULL;
	char error[256] = "";
	int r = exporter_new(&e, d, n, "1.2.3", on_done, &n_done, error, sizeof(error));

	if (r < 0)
		CHECK_STR(error, "");
	n_done = 0;
	return e;
}

/* How long this thread has not run though it could have: other processes did. */
static uint64_t queued_ns(void)
{
	uint64_t ran, queued = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");

	if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &ran, &queued) != 2)
		queued = 0;
	if (f)
		(void)fclose(f);
	return queued;
}

/* Turns until idle, or for at most so long, but once at least: this process may have waited for
 * the CPU all that time. Whatever it does, one turn must not block. */
static bool turn(struct exporter *e, unsigned int ms)
{
	uint64_t now = clock_monotonic_ns(), end = now + ms * NSEC_PER_MSEC;

	while (!exporter_idle(e)) {
		struct pollfd p = {exporter_fd(e), POLLIN, 0};
		uint64_t queued;
		int wait;

		(void)poll(&p, 1, now < end ? (int)((end - now) / NSEC_PER_MSEC) + 1 : 0);
		now = clock_monotonic_ns();
		queued = queued_ns();
		wait = exporter_dispatch(e);
		CHECK_INT(wait, ==, -1);
		CHECK_INT(clock_monotonic_ns() - now - (queued_ns() - queued), <, 2 * NSEC_PER_SEC);
		now = clock_monotonic_ns();
		if (now >= end)
			return exporter_idle(e);
	}
	return true;
}

/* Not idle meanwhile. */
static void turn_until(struct exporter *e, const uint64_t *count, uint64_t n)
{
	uint64_t end = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;

	while (*count < n && clock_monotonic_ns() < end)
		CHECK(!turn(e, 20));
	CHECK_INT(*count, >=, n);
}

static void check_sum(const struct export_stats *s)
{
	CHECK_INT(s->payloads, ==,
		  s->payloads_sent + s->payloads_dropped_queue_full + s->payloads_dropped_refused +
			  s->payloads_dropped_expired + s->payloads_dropped_spool_full +
			  s->payloads_dropped_corrupt + s->payloads_dropped_too_large +
			  s->queue_payloads);
	CHECK_INT(s->queue_payloads, >=, s->spool_payloads);
}

/* Standard error into a file, for what is logged. */
static int saved_stderr = -1, log_fd = -1;
static char log_text[1 << 16];

static void log_begin(void)
{
	saved_stderr = dup(STDERR_FILENO);
	log_fd = memfd_create("log", 0);
	CHECK_INT(dup2(log_fd, STDERR_FILENO), ==, STDERR_FILENO);
}

static void log_end(void)
{
	ssize_t n = pread(log_fd, log_text, sizeof(log_text) - 1, 0);

	CHECK_INT(dup2(saved_stderr, STDERR_FILENO), ==, STDERR_FILENO);
	(void)close(saved_stderr);
	(void)close(log_fd);
	log_text[n < 0 ? 0 : n] = '\0';
}

static unsigned int log_count(const char *text)
{
	unsigned int n = 0;

	for (const char *p = log_text; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void log_check(const char *text, unsigned int n)
{
	if (log_count(text) == n)
		return;
	fprintf(stderr, "%u times, not %u, in the log: %s\n--- log:\n%s", log_count(text), n, text,
		log_text);
	exit(1);
}

/* --- the table ----------------------------------------------------------------------------- */

struct row {
	const char *name;
	struct step steps[N_STEPS];
	unsigned int sent, refused, too_large, expired, retries, rejected;
	unsigned int n_requests; /* 0: not looked at */
	unsigned int wait_ms;	 /* least time from the payload's coming to the second request */
	unsigned int timeout_ms, max_elapsed_ms;
	const char *log;
};

#define OK                                                                                         \
	{                                                                                          \
		REPLY, 200, NULL, NULL, 0                                                          \
	}
#define ANSWER(code)                                                                               \
	{                                                                                          \
		REPLY, code, NULL, NULL, 0                                                         \
	}
#define SENT	   .sent = 1
#define REFUSED	   .refused = 1, .n_requests = 1
#define RETRIED(n) .sent = 1, .retries = (n), .n_requests = (n) + 1

static const struct row rows[] = {
	{"ok", {OK}, SENT, .n_requests = 1},
	{"accepted", {ANSWER(202)}, SENT, .n_requests = 1},
	{"warning",
	 {{REPLY, 200, NULL, BODY("\x0a\x06\x12\x04warn")}},
	 SENT,
	 .n_requests = 1,
	 .log = "export:warning: http://127.0.0.1:%d accepted a payload, with 0 refused and a "
		"warning: "
		"warn"},
	{"partial",
	 {{REPLY, 200, NULL, BODY("\x0a\x0b\x08\x03\x12\x07too old")}},
	 SENT,
	 .rejected = 3,
	 .n_requests = 1,
	 .log = "export:partial: http://127.0.0.1:%d accepted a payload except 3 of its profiles: "
		"too "
		"old"},
	{"page",
	 {{REPLY, 200, "Content-Type: text/html\r\n", BODY("<html>")}},
	 SENT,
	 .n_requests = 1,
	 .log = "export:page: http://127.0.0.1:%d accepted a payload, but answered with text/html; "
		"is"},
	{"nonsense-answer", {{REPLY, 200, NULL, BODY("\xff\xff\xff\xff")}}, SENT, .n_requests = 1},
	{"bad-request",
	 {{REPLY, 400, NULL,
	   BODY("\x08\x03\x12\x0c"
		"bad\nprofile!")}},
	 REFUSED,
	 .log = "refused a payload with status 400: bad?profile!; it is dropped; does the server"},
	{"unauthorized",
	 {{REPLY, 401, "WWW-Authenticate: Bearer\r\n", "go away\033[0m", 0}},
	 REFUSED,
	 .log = "with status 401: go away?[0m; it is dropped; check headers and headers_file"},
	{"forbidden", {ANSWER(403)}, REFUSED},
	{"not-found",
	 {ANSWER(404)},
	 REFUSED,
	 .log = "status 404; it is dropped; is the endpoint an OTLP/HTTP server"},
	{"too-large",
	 {{REPLY_UNREAD, 413, NULL, NULL, 0}},
	 .too_large = 1,
	 .n_requests = 1,
	 .log = "status 413; it is dropped; raise"},
	{"too-large-in-words",
	 {{REPLY, 400, NULL, "http: request body too large", 0}},
	 .too_large = 1,
	 .n_requests = 1,
	 .log = "status 400: http: request body too large; it is dropped; raise"},
	{"media-type", {ANSWER(415)}, REFUSED},
	{"internal", {ANSWER(500)}, REFUSED},
	{"not-implemented", {ANSWER(501)}, REFUSED},
	{"redirect",
	 {{REPLY, 307, "Location: /63/elsewhere\r\n", NULL, 0}},
	 REFUSED,
	 .log = "status 307; it is dropped; redirects are not followed"},
	{"found", {{REPLY, 302, "Location: http://127.0.0.1:1/\r\n", NULL, 0}}, REFUSED},
	{"not-modified", {ANSWER(304)}, REFUSED},
	{"limited",
	 {{REPLY, 429, "Retry-After: 1\r\n", NULL, 0}, OK},
	 RETRIED(1),
	 .wait_ms = 1000,
	 .log = "cannot take profiles: it accepts no more for now (429)"},
	{"limited-date", {{REPLY_DATE, 429, NULL, NULL, 0}, OK}, RETRIED(1), .wait_ms = 950},
	{"unavailable-after",
	 {{REPLY, 503, "retry-after:\t2\r\n", NULL, 0}, OK},
	 RETRIED(1),
	 .wait_ms = 2000},
	{"limited-nonsense",
	 {{REPLY, 429, "Retry-After: soon\r\n", NULL, 0}, OK},
	 RETRIED(1),
	 .wait_ms = 50},
	{"bad-gateway", {ANSWER(502), OK}, RETRIED(1), .wait_ms = 50},
	{"unavailable", {ANSWER(503), ANSWER(503), OK}, RETRIED(2), .wait_ms = 50},
	{"gateway-timeout", {ANSWER(504), OK}, RETRIED(1), .wait_ms = 50},
	{"retry-then-refused",
	 {ANSWER(503), ANSWER(400)},
	 .refused = 1,
	 .retries = 1,
	 .n_requests = 2},
	{"reset",
	 {{.action = PARTIAL_TEXT}, OK},
	 RETRIED(1),
	 .log = "cannot take profiles: it closed the connection without a complete answer"},
	{"closed", {{.action = CLOSE}, OK}, RETRIED(1)},
	{"stall",
	 {{.action = STALL}, OK},
	 RETRIED(1),
	 .timeout_ms = 1500,
	 .wait_ms = 1550,
	 .log = "cannot take profiles: no answer in time"},
	{"silent", {{.action = SILENT}, OK}, RETRIED(1), .timeout_ms = 1500, .wait_ms = 1550},
	{"endless", {{.action = ENDLESS}}, REFUSED, .log = "sent an answer beyond the limit"},
	{"endless-headers", {{.action = ENDLESS_HEADERS}}, REFUSED},
	{"bomb", {{.action = BOMB}}, REFUSED},
	{"bad-gzip", {{.action = BAD_GZIP}}, REFUSED, .log = "does not decompress"},
	{"garbage", {{.action = GARBAGE}, OK}, RETRIED(1), .log = "it does not speak HTTP"},
	{"never",
	 {ANSWER(503)},
	 .expired = 1,
	 .max_elapsed_ms = 3000,
	 .log = "1 payload(s) could not be delivered to http://127.0.0.1:%d in time and are "
		"dropped"},
};

static void check_row(const struct row *row, const struct export_stats *s, const struct seen *seen,
		      uint64_t begin_ns)
{
	bool hung = row->expired > 0;

	fprintf(stderr, "  %s\n", row->name);
	check_sum(s);
	CHECK_INT(s->payloads, ==, 1);
	CHECK_INT(s->samples, ==, 7);
	CHECK_INT(s->payloads_sent, ==, row->sent);
	CHECK_INT(s->samples_sent, ==, 7 * row->sent);
	CHECK_INT(s->payloads_dropped_refused, ==, row->refused);
	CHECK_INT(s->payloads_dropped_too_large, ==, row->too_large);
	CHECK_INT(s->payloads_dropped_expired, ==, row->expired);
	CHECK_INT(s->payloads_dropped_queue_full, ==, 0);
	CHECK_INT(s->samples_dropped, ==, 7 * (row->refused + row->too_large + row->expired));
	CHECK_INT(s->profiles_rejected, ==, row->rejected);
	CHECK_INT(s->queue_payloads, ==, 0);
	CHECK_INT(s->queue_bytes, ==, 0);
	CHECK_INT(s->bytes_sent > 0, ==, row->sent);
	if (hung) {
		CHECK_INT(s->retries, >=, 1);
		CHECK_INT(seen->n_requests, ==, s->retries);
	} else if (row->timeout_ms) { /* on a busy host the next answer may be late as well */
		CHECK_INT(s->retries, >=, row->retries);
		CHECK_INT(s->failures, ==, s->retries);
		CHECK_INT(seen->n_requests, ==, s->retries + 1);
	} else {
		CHECK_INT(s->retries, ==, row->retries);
		CHECK_INT(s->failures, ==, row->retries + row->refused + row->too_large);
	}
	if (row->n_requests && !row->timeout_ms)
		CHECK_INT(seen->n_requests, ==, row->n_requests);
	if (row->wait_ms)
		CHECK_INT(seen->at_ns[1] - begin_ns, >=, row->wait_ms * NSEC_PER_MSEC);
}

static void test_answers(void)
{
	static char endpoints[ARRAY_SIZE(rows)][64];
	struct export_destination d[ARRAY_SIZE(rows)];
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	uint16_t port = 0;
	pid_t server;
	uint64_t begin_ns;
	bool idle;

	_Static_assert(ARRAY_SIZE(rows) < N_SCRIPTS - 1, "a script for each row");
	scripts_clear();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		memcpy(shared->scripts[i], rows[i].steps, sizeof(rows[i].steps));
	server = server_start(&port);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)snprintf(endpoints[i], sizeof(endpoints[i]), "http://127.0.0.1:%d/%zu", port,
			       i);
		d[i] = (struct export_destination){
			.name = rows[i].name,
			.endpoint = endpoints[i],
			.encoding = i % 2 == 0 ? ENCODING_GZIP : ENCODING_IDENTITY,
			.timeout_ns = (rows[i].timeout_ms ? rows[i].timeout_ms : PATIENCE_MS) *
				      NSEC_PER_MSEC,
			.max_elapsed_ns = rows[i].max_elapsed_ms * NSEC_PER_MSEC,
		};
	}
	log_begin();
	e = exporter_of(d, ARRAY_SIZE(rows));
	begin_ns = clock_monotonic_ns();
	CHECK_INT(exporter_submit(e, 42, make_text_fd("a payload"), 7, begin_ns), ==, 0);
	CHECK(!exporter_idle(e));
	idle = turn(e, PATIENCE_MS);
	log_end();
	CHECK(idle);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_row(&rows[i], exporter_stats(e, i), &shared->seen[i], begin_ns);
		if (rows[i].log) {
			char line[256];

			_Pragma("GCC diagnostic push")
				_Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"")(void)
					snprintf(line, sizeof(line), rows[i].log, port);
			_Pragma("GCC diagnostic pop") if (strchr(rows[i].log, '%') ||
							  !strstr(log_text, line))
				log_check(line, 1);
		}
	}
	/* The place that redirects point to was never asked. */
	CHECK_INT(shared->seen[63].n_requests, ==, 0);
	CHECK_INT(n_done, ==, 1);
	CHECK_INT(done_ids[0], ==, 42);
	server_stop(server);
}

/* --- what is asked ------------------------------------------------------------------------- */

static void expect_header(const struct seen *s, const char *line)
{
	char whole[512];

	(void)snprintf(whole, sizeof(whole), "\r\n%s\r\n", line);
	if (!strstr(s->head, whole)) {
		fprintf(stderr, "no \"%s\" in:\n%s", line, s->head);
		exit(1);
	}
}

static void check_common(const struct seen *s)
{
	expect_header(s, "Content-Type: application/x-protobuf");
	expect_header(s, "OTLP-Profiles-Development-Version: 1");
	expect_header(s, "User-Agent: perfwalk/1.2.3 OTel-OTLP-Exporter-C/1.2.3");
	expect_header(s, "Accept-Encoding: gzip");
	CHECK(!strcasestr(s->head, "\r\nExpect:"));
}

static void test_request(void)
{
	static const char *const headers[] = {"Authorization: Bearer s3cret", "X-Scope-OrgID: a,b"};
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	static uint8_t payload[3 << 20], back[3 << 20];
	struct export_destination d[3] = {
		{.name = "gz", .encoding = ENCODING_GZIP, .headers = headers, .n_headers = 2},
		{.name = "raw", .max_queue_bytes = 64 << 20},
		{.name = "exact", .endpoint = "http://unused.invalid", .encoding = ENCODING_GZIP},
	};
	char urls[3][64];
	uint16_t port = 0;
	uint32_t x = 1;
	pid_t server;
	size_t n;
	int fd;

	/* Two thirds that do not compress: more than the megabyte from which curl would say Expect.
	 */
	for (size_t i = 0; i < sizeof(payload); i++) {
		x = x * 1664525 + 1013904223;
		payload[i] = i % 3 ? (uint8_t)(x >> 24) : 'p';
	}
	scripts_clear();
	for (size_t i = 0; i < 3; i++)
		shared->scripts[i][0] = (struct step)OK;
	server = server_start(&port);
	(void)snprintf(urls[0], sizeof(urls[0]), "http://127.0.0.1:%d/0//", port);
	(void)snprintf(urls[1], sizeof(urls[1]), "HTTP://localhost:%d/1", port);
	(void)snprintf(urls[2], sizeof(urls[2]), "http://127.0.0.1:%d/2/own?x=y", port);
	d[0].endpoint = urls[0];
	d[1].endpoint = urls[1];
	d[2].profiles_endpoint = urls[2];
	e = exporter_of(d, 3);
	fd = make_fd(payload, sizeof(payload));
	CHECK_INT(exporter_submit(e, 1, fd, 1, NOW), ==, 0);
	CHECK_INT(fcntl(fd, F_GETFD), ==, -1); /* taken over */
	CHECK(turn(e, PATIENCE_MS));

	CHECK_INT(strncmp(shared->seen[0].head, "POST /0/v1development/profiles HTTP/1.1\r\n", 41),
		  ==, 0);
	CHECK_INT(strncmp(shared->seen[1].head, "POST /1/v1development/profiles HTTP/1.1\r\n", 41),
		  ==, 0);
	CHECK_INT(strncmp(shared->seen[2].head, "POST /2/own?x=y HTTP/1.1\r\n", 26), ==, 0);
	for (size_t i = 0; i < 3; i++)
		check_common(&shared->seen[i]);
	expect_header(&shared->seen[0], "Authorization: Bearer s3cret");
	expect_header(&shared->seen[0], "X-Scope-OrgID: a,b");
	CHECK(!strstr(shared->seen[1].head, "s3cret"));
	expect_header(&shared->seen[0], "Content-Encoding: gzip");
	expect_header(&shared->seen[2], "Content-Encoding: gzip");
	CHECK(!strstr(shared->seen[1].head, "Content-Encoding"));

	CHECK(inflate_all(shared->seen[0].body, shared->seen[0].n_body, back, sizeof(back), &n));
	CHECK_INT(n, ==, sizeof(payload));
	CHECK_INT(memcmp(back, payload, n), ==, 0);
	CHECK_INT(shared->seen[0].n_body, <, sizeof(payload));
	CHECK_INT(exporter_stats(e, 0)->bytes_sent, ==, shared->seen[0].n_body);
	CHECK_INT(shared->seen[1].n_body, ==, sizeof(payload));
	CHECK_INT(memcmp(shared->seen[1].body, payload, sizeof(payload)), ==, 0);
	CHECK_INT(exporter_stats(e, 1)->bytes_sent, ==, sizeof(payload));
	server_stop(server);
}

static void test_keep_alive(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d = {.name = "a", .encoding = ENCODING_GZIP};
	char url[64];
	uint16_t port = 0;
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step)OK;
	server = server_start(&port);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/0", port);
	d.endpoint = url;
	e = exporter_of(&d, 1);
	for (uint64_t i = 0; i < 5; i++) {
		CHECK_INT(exporter_submit(e, i, make_text_fd("x"), 1, NOW), ==, 0);
		if (i > 1)
			CHECK(turn(e, PATIENCE_MS));
	}
	CHECK_INT(shared->seen[0].n_requests, ==, 5);
	CHECK_INT(shared->n_connections, ==, 1);
	CHECK_INT(n_done, ==, 5);
	for (uint64_t i = 0; i < 5; i++)
		CHECK_INT(done_ids[i], ==, i);
	server_stop(server);
}

/* --- the queue ----------------------------------------------------------------------------- */

/* Nobody listens; the queue fills, the oldest go; then somebody does, and what is left arrives. */
static void test_refused_then_up(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d = {.name = "later"};
	char url[64], text[16];
	const struct export_stats *s;
	uint16_t port = unused_port();
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step)OK;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/0?token=hush", port);
	d.profiles_endpoint = url;
	d.max_queue_bytes = 3 * (8 + 256) + 10;
	log_begin();
	e = exporter_of(&d, 1);
	s = exporter_stats(e, 0);
	for (uint64_t i = 0; i < 5; i++) {
		(void)snprintf(text, sizeof(text), "payload%d", (int)i);
		CHECK_INT(exporter_submit(e, i, make_text_fd(text), 10, NOW), ==, 0);
		CHECK_INT(s->queue_bytes, <=, d.max_queue_bytes);
	}
	CHECK_INT(s->payloads_dropped_queue_full, ==, 2);
	CHECK_INT(s->samples_dropped, ==, 20);
	CHECK_INT(s->queue_payloads, ==, 3);
	CHECK_INT(s->queue_bytes, ==, 3 * (8 + 256));
	CHECK_INT(n_done, ==, 0);
	turn_until(e, &s->retries, 1);
	CHECK_INT(n_done, ==, 2);
	CHECK_INT(s->queue_payloads, ==, 3);
	check_sum(s);

	server = server_start(&port);
	CHECK(turn(e, PATIENCE_MS));
	log_end();
	CHECK_INT(s->payloads_sent, ==, 3);
	CHECK_INT(s->samples_sent, ==, 30);
	CHECK_INT(s->bytes_sent, ==, 24);
	CHECK_INT(n_done, ==, 5);
	check_sum(s);
	log_check("export:later: http://127.0.0.1:", 2);
	log_check("cannot take profiles: connection refused; does an OTLP/HTTP server listen", 1);
	log_check("answers again after ", 1);
	log_check("; 3 payload(s) waited", 1);
	log_check("the queue is full", 1);
	log_check("hush", 0);
	server_stop(server);
}

/* A payload that can never fit is dropped, and does not push out those that wait. */
static void test_never_fits(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d = {
		.name = "small", .endpoint = "http://127.0.0.1:1", .max_queue_bytes = 1000};
	static char big[1000];
	const struct export_stats *s;

	memset(big, 'b', sizeof(big));
	log_begin();
	e = exporter_of(&d, 1);
	s = exporter_stats(e, 0);
	CHECK_INT(exporter_submit(e, 1, make_text_fd("first"), 1, NOW), ==, 0);
	CHECK_INT(exporter_submit(e, 2, make_fd(big, sizeof(big)), 5, NOW), ==, 0);
	(void)turn(e, 20);
	CHECK_INT(s->queue_payloads, ==, 1);
	CHECK_INT(s->payloads_dropped_queue_full, ==, 1);
	CHECK_INT(s->samples_dropped, ==, 5);
	CHECK_INT(n_done, ==, 1);
	CHECK_INT(done_ids[0], ==, 2);
	e = exporter_free(e);
	log_end();
	/* The one before and the one that was left, as a sum. */
	log_check("export:small: 2 payload(s) with 6 samples were dropped in all and are not at "
		  "http://127.0.0.1:1",
		  1);
}

/* One payload that the server chokes on does not hold up the others. */
static void test_poison(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d = {.name = "p", .encoding = ENCODING_GZIP};
	const struct export_stats *s;
	char url[64];
	uint16_t port = 0;
	uint64_t end;
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step){POISON, 503, NULL, NULL, 0};
	server = server_start(&port);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/0", port);
	d.endpoint = url;
	log_begin();
	e = exporter_of(&d, 1);
	s = exporter_stats(e, 0);
	CHECK_INT(exporter_submit(e, 0, make_text_fd("poison"), 1, NOW), ==, 0);
	for (uint64_t i = 1; i < 4; i++)
		CHECK_INT(exporter_submit(e, i, make_text_fd("fine"), 1, NOW), ==, 0);
	for (end = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;
	     s->payloads_sent < 3 && clock_monotonic_ns() < end;)
		(void)turn(e, 50);
	log_end();
	CHECK_INT(s->payloads_sent, ==, 3);
	CHECK_INT(s->queue_payloads, ==, 1);
	log_begin();
	e = exporter_free(e);
	log_end();
	server_stop(server);
}

static void test_hurry(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d[3] = {{.name = "soon"}, {.name = "never"}, {.name = "silent"}};
	const struct export_stats *s;
	char urls[3][64];
	uint16_t port = 0;
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step){REPLY, 503, "Retry-After: 500\r\n", NULL, 0};
	shared->scripts[0][1] = (struct step)OK;
	shared->scripts[1][0] = (struct step){REPLY, 503, "Retry-After: 500\r\n", NULL, 0};
	shared->scripts[2][0] = (struct step){.action = SILENT};
	server = server_start(&port);
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(urls[i], sizeof(urls[i]), "http://127.0.0.1:%d/%zu", port, i);
		d[i].endpoint = urls[i];
		d[i].timeout_ns = 600 * NSEC_PER_SEC;
	}
	log_begin();
	e = exporter_of(d, 3);
	CHECK_INT(exporter_submit(e, 1, make_text_fd("x"), 3, NOW), ==, 0);
	turn_until(e, &exporter_stats(e, 0)->retries, 1);
	turn_until(e, &exporter_stats(e, 1)->retries, 1);
	CHECK_INT(exporter_stats(e, 0)->retries, ==, 1);
	CHECK_INT(exporter_stats(e, 0)->queue_payloads, ==, 1);

	exporter_hurry(e);
	CHECK(turn(e, PATIENCE_MS)); /* for 500 seconds, or 600, nobody waits */
	CHECK_INT(exporter_stats(e, 0)->payloads_sent, ==, 1);
	log_end();
	s = exporter_stats(e, 1);
	CHECK_INT(s->payloads_dropped_expired, ==, 1);
	CHECK_INT(s->retries, >=, 3); /* thirteen, if the server gets its share of the CPU */
	CHECK_INT(s->retries, <, 40);
	check_sum(s);
	s = exporter_stats(e, 2);
	CHECK_INT(s->payloads_dropped_expired, ==, 1);
	CHECK_INT(s->failures, ==, 1);
	check_sum(s);
	CHECK_INT(n_done, ==, 1);
	server_stop(server);
}

/* --- the spool ----------------------------------------------------------------------------- */

static char spool_dir[] = "/tmp/test-export.XXXXXX";

static void use_spool(struct exporter *e, uint64_t max_bytes)
{
	const struct export_spool spool = {
		.dir_fd = open(spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.path = spool_dir,
		.max_bytes = max_bytes,
	};

	CHECK_INT(spool.dir_fd, >=, 0);
	CHECK_INT(exporter_set_spool(e, &spool), ==, 0);
}

static int n_spool_files(void)
{
	char command[64];
	int n = -1;
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls %s | wc -l", spool_dir);
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &n) == 1);
	(void)pclose(f);
	return n;
}

static void in_spool(const char *what)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "cd %s && %s", spool_dir, what);
	CHECK_INT(system(command), ==, 0);
}

/* Of two destinations one is away: what it does not take is settled once it is on disk. */
static void spool_while_away(struct export_destination d[2])
{
	_cleanup_(exporter_freep) struct exporter *e = exporter_of(d, 2);
	const struct export_stats *s = exporter_stats(e, 0);
	uint64_t begin = clock_monotonic_ns();
	char text[16];

	use_spool(e, 1 << 20);
	for (uint64_t i = 0; i < 3; i++) {
		(void)snprintf(text, sizeof(text), "payload%d", (int)i);
		CHECK_INT(exporter_submit(e, i, make_text_fd(text), 10, NOW), ==, 0);
	}
	turn_until(e, &exporter_stats(e, 1)->payloads_sent, 3);
	turn_until(e, &s->spool_payloads, 3);
	CHECK_INT(clock_monotonic_ns() - begin, >=, 3 * NSEC_PER_SEC);
	CHECK(!turn(e, 20));
	CHECK_INT(n_done, ==, 3);
	CHECK_INT(n_spool_files(), ==, 3);
	CHECK_INT(s->payloads_spooled, ==, 3);
	CHECK_INT(s->queue_payloads, ==, 3);
	CHECK_INT(s->queue_bytes, ==, 0);
	CHECK_INT(s->spool_payloads, ==, 3);
	CHECK_INT(s->spool_bytes, >, 3 * 56);
	check_sum(s);

	/* By the next failure, what comes goes to disk at once. It may be the fifth, for which
	 * chance chooses up to 16 s. */
	for (begin = clock_monotonic_ns(); !e->destinations[0].spooling;) {
		CHECK_INT(clock_monotonic_ns() - begin, <, PATIENCE_MS * NSEC_PER_MSEC);
		CHECK(!turn(e, 20));
	}
	CHECK_INT(exporter_submit(e, 3, make_text_fd("payload3"), 10, NOW), ==, 0);
	(void)exporter_dispatch(e);
	CHECK_INT(n_spool_files(), ==, 4);
	turn_until(e, &exporter_stats(e, 1)->payloads_sent, 4);
	CHECK(!turn(e, 100));
	CHECK_INT(n_done, ==, 4);
	CHECK_INT(exporter_stats(e, 1)->payloads_sent, ==, 4);
	CHECK_INT(exporter_stats(e, 1)->payloads_spooled, ==, 0);
}

/* The exporter before died young, and this one may, too: what was made seconds ago is settled at
 * the first turns, though nothing has failed yet. */
static void spool_what_came_late(const struct export_destination *d)
{
	_cleanup_(exporter_freep) struct exporter *e = exporter_of(d, 1);
	const struct export_stats *s = exporter_stats(e, 0);
	uint64_t made_ns = NOW - 10 * NSEC_PER_SEC;

	use_spool(e, 1 << 20);
	for (uint64_t i = 0; i < SPOOL_BATCH + 4; i++)
		CHECK_INT(exporter_submit(e, i, make_text_fd("old"), 10, made_ns + i), ==, 0);
	CHECK_INT(n_spool_files(), ==, 0);
	(void)exporter_dispatch(e);
	CHECK_INT(n_done, ==, SPOOL_BATCH);
	CHECK_INT(n_spool_files(), ==, SPOOL_BATCH);
	(void)exporter_dispatch(e);
	CHECK_INT(n_done, ==, SPOOL_BATCH + 4);
	CHECK_INT(s->payloads_spooled, ==, SPOOL_BATCH + 4);
	CHECK_INT(s->spool_payloads, ==, SPOOL_BATCH + 4);
	check_sum(s);
	in_spool("rm *.otlp");
}

/* Killed before it could say that 3 is settled: it is handed over again, and known. */
static void spool_again(struct export_destination d[2])
{
	_cleanup_(exporter_freep) struct exporter *e = exporter_of(d, 1);
	const struct export_stats *s = exporter_stats(e, 0);

	use_spool(e, 1 << 20);
	CHECK_INT(s->payloads_found, ==, 4);
	CHECK_INT(s->samples, ==, 40);
	CHECK_INT(exporter_submit(e, 3, make_text_fd("payload3"), 10, NOW), ==, 0);
	CHECK_INT(exporter_submit(e, 3, make_text_fd("another3"), 10, NOW), ==, 0);
	for (int i = 0; i < PATIENCE_MS / 100 && n_done < 2; i++)
		CHECK(!turn(e, 100));
	CHECK_INT(n_done, ==, 2);
	CHECK_INT(s->payloads, ==, 5);
	CHECK_INT(n_spool_files(), ==, 5);
}

static void test_spool(void)
{
	struct export_destination d[2] = {{.name = "away", .encoding = ENCODING_GZIP},
					  {.name = "here"}};
	struct exporter *e;
	char urls[2][64];
	uint16_t port = 0, away = unused_port();
	pid_t server, second;
	uint64_t made_ns;

	scripts_clear();
	shared->scripts[0][0] = (struct step)OK;
	shared->scripts[1][0] = (struct step)OK;
	server = server_start(&port);
	(void)snprintf(urls[0], sizeof(urls[0]), "http://127.0.0.1:%d/0", away);
	(void)snprintf(urls[1], sizeof(urls[1]), "http://127.0.0.1:%d/1", port);
	d[0].endpoint = urls[0];
	d[1].endpoint = urls[1];
	spool_what_came_late(d);
	log_begin();
	spool_while_away(d);
	spool_again(d);
	/* Without the destination, they wait for it. */
	e = exporter_of(&d[1], 1);
	use_spool(e, 1 << 20);
	CHECK(exporter_idle(e));
	e = exporter_free(e);
	CHECK_INT(n_spool_files(), ==, 5);

	/* It is back, under a configuration without compression: what is gzip says so. */
	second = server_start(&away);
	d[0].encoding = ENCODING_IDENTITY;
	e = exporter_of(d, 1);
	use_spool(e, 1 << 20);
	made_ns = NOW;
	turn_until(e, &exporter_stats(e, 0)->payloads_sent, 1);
	expect_header(&shared->seen[0], "Content-Encoding: gzip");
	/* What comes now and is from before goes behind them. */
	CHECK_INT(exporter_submit(e, 9, make_text_fd("late"), 10, made_ns), ==, 0);
	CHECK(turn(e, PATIENCE_MS));
	log_end();
	CHECK_INT(exporter_stats(e, 0)->payloads_sent, ==, 6);
	CHECK_INT(exporter_stats(e, 0)->samples_sent, ==, 60);
	CHECK(shared->seen[0].n_body == 4 && memcmp(shared->seen[0].body, "late", 4) == 0);
	CHECK_INT(exporter_stats(e, 0)->spool_bytes, ==, 0);
	check_sum(exporter_stats(e, 0));
	CHECK_INT(shared->seen[0].n_requests, ==, 6);
	CHECK_INT(n_spool_files(), ==, 0);
	/* At a limited rate. */
	CHECK_INT(shared->seen[0].at_ns[4] - shared->seen[0].at_ns[0], >=, 4 * 25 * NSEC_PER_MSEC);
	log_check("does not accept profiles for now; they are kept in", 1);
	log_check("the spool is empty again: 6 payload(s)", 1);
	log_check("lost", 0);
	exporter_free(e);
	server_stop(server);
	server_stop(second);
}

/* A request of n samples, each with n_stamps timestamps of noise, which no gzip makes smaller. */
static int make_profile_fd(unsigned int n, size_t n_stamps)
{
	struct wire_buffer m[4] = {0}; /* request, ResourceProfiles, ScopeProfiles, Profile */
	uint32_t seed = 1;
	int fd;

	for (unsigned int i = 0; i < n; i++) {
		struct wire_buffer stamps = {0}, sample = {0};

		for (size_t j = 0; j < n_stamps * 2; j++) {
			uint8_t *p = wire_reserve(&stamps, 4);

			seed = seed * 1664525 + 1013904223;
			memcpy(p, &seed, 4);
			stamps.n += 4;
		}
		wire_put_bytes(&sample, 5, stamps.bytes, stamps.n);
		wire_put_bytes(&m[3], 2, sample.bytes, sample.n);
		wire_buffer_deinit(&stamps);
		wire_buffer_deinit(&sample);
	}
	wire_put_bytes(&m[2], 2, m[3].bytes, m[3].n);
	wire_put_bytes(&m[1], 2, m[2].bytes, m[2].n);
	wire_put_bytes(&m[0], 1, m[1].bytes, m[1].n);
	fd = make_fd(m[0].bytes, m[0].n);
	for (int i = 0; i < 4; i++)
		wire_buffer_deinit(&m[i]);
	return fd;
}

static void check_split(const struct export_stats *s, unsigned int split, unsigned int sent,
			unsigned int too_large)
{
	check_sum(s);
	CHECK_INT(s->samples, ==, 16000);
	CHECK_INT(s->payloads_split, ==, split);
	CHECK_INT(s->payloads_sent, ==, sent);
	CHECK_INT(s->payloads_dropped_too_large, ==, too_large);
	CHECK_INT(s->samples_sent + s->samples_dropped, ==, 16000);
	CHECK_INT(s->samples_sent, ==, too_large ? 0 : 16000);
	CHECK_INT(s->queue_payloads + s->queue_bytes + s->spool_bytes, ==, 0);
}

/* 128 KiB at servers that take 50000 bytes go in four pieces, from memory and from disk; where
 * nothing at all is taken, a piece of each size is tried. */
static void test_split(void)
{
	static char endpoints[4][64];
	struct export_destination d[4] = {{.name = "plain"},
					  {.name = "gzip", .encoding = ENCODING_GZIP},
					  {.name = "never"},
					  {.name = "disk"}};
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	uint16_t port = 0;
	pid_t server;
	bool idle;

	scripts_clear();
	for (size_t i = 0; i < ARRAY_SIZE(d); i++) {
		shared->scripts[i][0] = (struct step){i == 2 ? REPLY : LIMIT, 413, NULL, NULL, 0};
	}
	server = server_start(&port);
	for (size_t i = 0; i < ARRAY_SIZE(d); i++) {
		(void)snprintf(endpoints[i], sizeof(endpoints[i]), "http://127.0.0.1:%d/%zu", port,
			       i);
		d[i].endpoint = endpoints[i];
	}
	log_begin();
	e = exporter_of(d, ARRAY_SIZE(d));
	use_spool(e, 1 << 20);
	e->destinations[3].spooling = true;
	CHECK_INT(exporter_submit(e, 9, make_profile_fd(8, 2000), 16000, NOW), ==, 0);
	(void)exporter_dispatch(e);
	CHECK_INT(n_spool_files(), ==, 1);
	idle = turn(e, PATIENCE_MS);
	log_end();
	CHECK(idle);
	check_split(exporter_stats(e, 0), 3, 4, 0);
	check_split(exporter_stats(e, 1), 3, 4, 0);
	check_split(exporter_stats(e, 2), 4, 0, 5);
	check_split(exporter_stats(e, 3), 3, 4, 0);
	CHECK_INT(exporter_stats(e, 3)->payloads_spooled, ==, 7);
	CHECK_INT(n_spool_files(), ==, 0);
	CHECK_INT(n_done, ==, 1);
	CHECK_INT(done_ids[0], ==, 9);
	log_check("export:plain: a payload is too large for http://127.0.0.1:", 1);
	log_check("export:never: a payload is too large for http://127.0.0.1:", 1);
	log_check("export:never: http://127.0.0.1:", 1);
	log_check("with status 413; it is dropped; raise", 1);
	server_stop(server);
}

/* On disk halves are where the whole was, in their order, now and for the next exporter. */
static void test_split_order(void)
{
	char endpoint[64];
	struct export_destination d = {.name = "disk", .endpoint = endpoint};
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	const struct entry *first, *second, *other;
	uint16_t port = 0;
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step){LIMIT, 413, NULL, NULL, 0};
	server = server_start(&port);
	(void)snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d/0", port);
	log_begin();
	e = exporter_of(&d, 1);
	use_spool(e, 1 << 20);
	e->destinations[0].spooling = true;
	CHECK_INT(exporter_submit(e, 9, make_profile_fd(4, 2000), 8000, NOW), ==, 0);
	CHECK_INT(exporter_submit(e, 10, make_text_fd("other"), 1, NOW), ==, 0);
	for (int i = 0; i < PATIENCE_MS / 5 && exporter_stats(e, 0)->payloads_split < 1; i++)
		(void)turn(e, 5);
	first = TAILQ_FIRST(&e->destinations[0].backlog);
	second = first ? TAILQ_NEXT(first, link) : NULL;
	other = second ? TAILQ_NEXT(second, link) : NULL;
	CHECK(other);
	CHECK_INT(first->file->id, ==, 9);
	CHECK_INT(second->file->id, ==, 9);
	CHECK_INT(other->file->id, ==, 10);
	CHECK_INT(first->seq, <, second->seq);
	CHECK(turn(e, PATIENCE_MS));
	log_end();
	server_stop(server);
}

static void test_spool_full(void)
{
	struct export_destination d = {.name = "away", .endpoint = "http://127.0.0.1:1"};
	_cleanup_(exporter_freep) struct exporter *e = exporter_of(&d, 1);
	const struct export_stats *s = exporter_stats(e, 0);
	static char body[1000];

	log_begin();
	use_spool(e, 5 * (sizeof(body) + 60));
	e->destinations[0].spooling = true;
	for (uint64_t i = 0; i < 8; i++)
		CHECK_INT(exporter_submit(e, i, make_fd(body, sizeof(body)), 10, NOW), ==, 0);
	(void)exporter_dispatch(e);
	CHECK_INT(s->payloads_dropped_spool_full, ==, 3);
	CHECK_INT(s->samples_dropped, ==, 30);
	CHECK_INT(s->spool_payloads, ==, 5);
	CHECK_INT(n_done, ==, 8);
	check_sum(s);
	/* Next, a file that is damaged behind our back. */
	in_spool("for f in *; do echo x > $f; break; done");
	turn_until(e, &s->payloads_dropped_corrupt, 1);
	CHECK_INT(s->payloads_dropped_corrupt, ==, 1);
	CHECK_INT(s->queue_payloads, ==, 4);
	check_sum(s);
	e = exporter_free(e);
	log_end();
	log_check("the spool is full", 1);
	log_check("is damaged; it is set aside", 1);
	in_spool("rm *");
}

/* At the end nothing waits for a server that is known to be away, nor for one that is silent. */
static void test_spool_hurry(void)
{
	struct export_destination d[2] = {{.name = "away", .endpoint = "http://127.0.0.1:1"},
					  {.name = "silent"}};
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	uint16_t port = 0;
	char url[64];
	pid_t server;

	scripts_clear();
	shared->scripts[0][0] = (struct step){.action = SILENT};
	server = server_start(&port);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/0", port);
	d[1].endpoint = url;
	d[1].timeout_ns = 600 * NSEC_PER_SEC;
	log_begin();
	e = exporter_of(d, 2);
	use_spool(e, 1 << 20);
	CHECK_INT(exporter_submit(e, 1, make_text_fd("x"), 3, NOW), ==, 0);
	CHECK(!turn(e, 300));
	exporter_hurry(e);
	turn_until(e, &exporter_stats(e, 0)->spool_payloads, 1);
	/* Safe, but its answer may still come; it has 600 seconds, for which nobody waits. */
	turn_until(e, &exporter_stats(e, 1)->spool_payloads, 1);
	CHECK_INT(n_done, ==, 1);
	CHECK(turn(e, PATIENCE_MS));
	e = exporter_free(e);
	log_end();
	log_check("lost", 0);
	log_check("dropped", 0);
	CHECK_INT(n_spool_files(), ==, 2);
	in_spool("rm *");
	server_stop(server);
}

/* --- small things -------------------------------------------------------------------------- */

static void test_submit_errors(void)
{
	struct export_destination d = {
		.name = "a", .endpoint = "http://127.0.0.1:1", .encoding = ENCODING_GZIP};
	_cleanup_(exporter_freep) struct exporter *e = exporter_of(&d, 1);
	int fd = memfd_create("big", 0);

	CHECK_INT(ftruncate(fd, (64 << 20) + 1), ==, 0);
	CHECK_INT(exporter_submit(e, 1, fd, 1, NOW), ==, -EFBIG);
	CHECK_INT(fcntl(fd, F_GETFD), ==, -1);
	CHECK_INT(exporter_submit(e, 1, memfd_create("empty", 0), 20, NOW), ==, -ENODATA);
	CHECK_INT(exporter_submit(e, 1, -1, 300, NOW), ==, -EBADF);
	/* No sample is lost without a count. */
	CHECK_INT(exporter_stats(e, 0)->payloads_dropped_too_large, ==, 1);
	CHECK_INT(exporter_stats(e, 0)->payloads_dropped_corrupt, ==, 2);
	CHECK_INT(exporter_stats(e, 0)->samples_dropped, ==, 321);
	CHECK_INT(exporter_stats(e, 0)->samples, ==, 321);
	check_sum(exporter_stats(e, 0));
	CHECK(exporter_idle(e));
}

/* There and back; cut anywhere it is no body; and no more comes out than is allowed. */
static void check_encoding(enum encoding encoding, const uint8_t *bytes, size_t n, bool known)
{
	_cleanup_(encoder_freep) struct encoder *e = NULL;
	_cleanup_free_ uint8_t *packed = NULL, *back = NULL;
	size_t n_packed, n_back = 0;
	uint8_t *none = NULL;

	CHECK_INT(encoder_new(&e, encoding, known ? n : 0), ==, 0);
	CHECK_INT(encoder_put(e, bytes, n / 3, false), ==, 0);
	CHECK_INT(encoder_put(e, bytes + n / 3, n - n / 3, true), ==, 0);
	packed = encoder_take(e, &n_packed);
	if (known || encoding != ENCODING_ZSTD)
		CHECK_INT(encoding_size(encoding, packed, n_packed), ==, n);
	if (encoding == ENCODING_IDENTITY) {
		CHECK(n_packed == n && memcmp(packed, bytes, n) == 0);
		return;
	}
	CHECK_INT(n_packed, <, n / 2);
	CHECK_INT(encoding_decode(encoding, packed, n_packed, n, &back, &n_back), ==, 0);
	CHECK(n_back == n && memcmp(back, bytes, n) == 0);
	for (size_t cut = 0; cut < n_packed; cut += 1 + cut / 8)
		CHECK_INT(encoding_decode(encoding, packed, cut, n, &none, &n_back), ==, -EBADMSG);
	CHECK_INT(encoding_decode(encoding, packed, n_packed, n - 1, &none, &n_back), ==, -EFBIG);
	CHECK_INT(encoding_decode(encoding, bytes, n, n, &none, &n_back), ==, -EBADMSG);
	CHECK(!none);
}

static void test_encodings(void)
{
	static uint8_t bytes[100000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i % 251 + i / 1000);
	for (enum encoding i = 0; i < N_ENCODINGS; i++) {
		for (int known = 0; known < 2 && encoding_supported(i); known++)
			check_encoding(i, bytes, sizeof(bytes), known);
	}
}

static void test_bad_destinations(void)
{
	static const struct {
		const char *endpoint, *message;
	} bad[] = {
		{"ftp://h", "export:x: the endpoint is not an http:// or https:// URL"},
		{"h:4318", "export:x: the endpoint is not an http:// or https:// URL"},
		{"http://u:p@h", "export:x: the endpoint needs a host, without user and password"},
		{"http:///x", "export:x: the endpoint needs a host, without user and password"},
	};
	struct exporter *e = NULL;
	char error[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct export_destination d[2] = {{.name = "ok", .endpoint = "http://h"},
						  {.name = "x", .endpoint = bad[i].endpoint}};

		CHECK_INT(exporter_new(&e, d, 2, "1", NULL, NULL, error, sizeof(error)), ==,
			  -EINVAL);
		CHECK_STR(error, bad[i].message);
		CHECK(!e);
	}
	CHECK_INT(exporter_new(&e, NULL, 0, "1", NULL, NULL, error, sizeof(error)), ==, -EINVAL);
}

/* Two destinations that cannot be had: plain HTTP where TLS is asked for, and a host without name.
 */
static void test_unreachable(void)
{
	_cleanup_(exporter_freep) struct exporter *e = NULL;
	struct export_destination d[2] = {{.name = "tls", .max_elapsed_ns = NSEC_PER_SEC},
					  {.name = "dns",
					   .endpoint = "http://nothing.invalid",
					   .max_elapsed_ns = NSEC_PER_SEC}};
	char url[128];
	uint16_t port = 0;
	pid_t server;
	bool idle;

	scripts_clear();
	shared->scripts[0][0] = (struct step){.action = GARBAGE};
	server = server_start(&port);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/0", port);
	d[0].endpoint = url;
	d[0].timeout_ns = 500 * NSEC_PER_MSEC;
	log_begin();
	e = exporter_of(d, 2);
	CHECK_INT(exporter_submit(e, 1, make_text_fd("x"), 1, NOW), ==, 0);
	idle = turn(e, PATIENCE_MS);
	log_end();
	CHECK(idle);
	CHECK_INT(exporter_stats(e, 0)->payloads_dropped_expired, ==, 1);
	CHECK_INT(exporter_stats(e, 1)->payloads_dropped_expired, ==, 1);
	CHECK_INT(exporter_stats(e, 0)->bytes_sent, ==, 0);
	log_check("export:dns: http://nothing.invalid cannot take profiles: ", 1);
	log_check("export:tls: https://127.0.0.1", 1);
	(void)snprintf(url, sizeof(url),
		       "https://127.0.0.1:%d cannot take profiles: no answer in time", port);
	log_check(url, 1);
	log_check("export:dns: 1 payload(s) could not be delivered", 1);
	log_check("export:tls: 1 payload(s) could not be delivered", 1);
	server_stop(server);
}

static void test_retry_delays(void)
{
	static const struct {
		unsigned int failures;
		uint64_t least_ms, bound_ms;
	} bounds[] = {
		{1, 50, 1000},	{2, 50, 2000},	   {3, 50, 4000},      {5, 50, 16000},
		{6, 50, 32000}, {7, 30000, 60000}, {40, 30000, 60000}, {UINT32_MAX, 30000, 60000}};

	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		uint64_t least = UINT64_MAX, most = 0;
		uint64_t tenth_ms = (bounds[i].bound_ms - bounds[i].least_ms) / 10;

		for (int j = 0; j < 500; j++) {
			uint64_t d = retry_delay_ns(bounds[i].failures);

			least = d < least ? d : least;
			most = d > most ? d : most;
		}
		CHECK_INT(least, >=, bounds[i].least_ms * NSEC_PER_MSEC);
		CHECK_INT(most, <=, bounds[i].bound_ms * NSEC_PER_MSEC);
		/* Spread over the whole: 500 draws miss either tenth once in 10^22 runs. */
		CHECK_INT(least, <, (bounds[i].least_ms + tenth_ms) * NSEC_PER_MSEC);
		CHECK_INT(most, >, (bounds[i].bound_ms - tenth_ms) * NSEC_PER_MSEC);
	}
}

/* Hours without a server, by the delays alone: after a minute at most two attempts in each. */
static void test_attempts_of_hours(void)
{
	for (int host = 0; host < 200; host++) {
		uint64_t now = 0, last[2] = {0};

		for (unsigned int failures = 1; now < 3600 * NSEC_PER_SEC; failures++) {
			now += retry_delay_ns(failures);
			/* Three of them take a minute. */
			if (failures > 8)
				CHECK_INT(now - last[failures % 2], >, 60 * NSEC_PER_SEC);
			last[failures % 2] = now;
		}
	}
}

static void test_retry_after(void)
{
	static const struct {
		const char *text;
		bool valid;
		uint64_t least_s;
	} cases[] = {
		{"", false, 0},
		{"0", true, 0},
		{"17", true, 17},
		{"599", true, 599},
		{"601", true, 600},
		{"99999999999999999999999", true, 600},
		{"-1", false, 0},
		{"1.5x", false, 0},
		{"soon", false, 0},
		{"Sun, 06 Nov 1994 08:49:47 GMT", true, 10},
		{"Sunday, 06-Nov-94 08:49:47 GMT", true, 10},
		{"Sun Nov  6 08:49:47 1994", true, 10},
		{"Sun, 06 Nov 1994 08:49:00 GMT", true, 0},
		{"Sun, 06 Nov 2094 08:49:00 GMT", true, 600},
	};
	struct curl_api curl;
	char error[256];

	CHECK_INT(curl_api_load(&curl, error, sizeof(error)), ==, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 0;

		fprintf(stderr, "  '%s'\n", cases[i].text);
		/* 784111777: 1994-11-06 08:49:37 UTC. */
		CHECK_INT(retry_parse_after(&curl, cases[i].text, 784111777, &ns), ==,
			  cases[i].valid);
		if (!cases[i].valid)
			continue;
		CHECK_INT(ns, >=, cases[i].least_s * NSEC_PER_SEC);
		CHECK_INT(ns, <=, cases[i].least_s * NSEC_PER_SEC * 11 / 10 + NSEC_PER_SEC / 10);
	}
}

int main(void)
{
	struct curl_api curl;
	char error[256];

	if (curl_api_load(&curl, error, sizeof(error)) < 0)
		SKIP("%s", error);
	(void)unsetenv("http_proxy");
	(void)unsetenv("https_proxy");
	(void)unsetenv("HTTPS_PROXY");
	(void)unsetenv("ALL_PROXY");
	(void)unsetenv("all_proxy");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	RUN(test_retry_delays);
	RUN(test_attempts_of_hours);
	RUN(test_retry_after);
	RUN(test_encodings);
	RUN(test_bad_destinations);
	RUN(test_submit_errors);
	RUN(test_request);
	RUN(test_keep_alive);
	RUN(test_answers);
	RUN(test_refused_then_up);
	RUN(test_never_fits);
	RUN(test_poison);
	RUN(test_hurry);
	RUN(test_unreachable);
	test_make_directory(spool_dir);
	RUN(test_spool);
	RUN(test_spool_full);
	RUN(test_split);
	RUN(test_split_order);
	RUN(test_spool_hurry);
	return rmdir(spool_dir) == 0 ? 0 : 1;
}
