/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles over HTTP, between payloads and a broker that the test plays: what is in an answer is
 * the CPU time of just the requested seconds, counted in the pprof file by its own schema.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <zlib.h>

#include "proto/pprof.pb-c.h"
#include "src/http/serve.h"
#include "src/metrics/pulls.h"
#include "src/metrics/setup.h"
#include "src/process/ask.h"
#include "src/process/statistics.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/loop.h"

enum { MAX_CLIENTS = PULLS_MAX + 2, MAX_ANSWER = 1 << 20, N_BUSY = 3 };

/* What the broker does, and has seen; in memory that both share. */
static struct shared {
	uint32_t n_flushes, n_asked;
	uint64_t flushed_ns;
} * shared;

static struct {
	struct loop *loop;
	struct serve *serve;
	struct pulls *pulls;
	struct ask ask;
	pid_t broker;
	uint16_t port;
	void (*on_drain)(void);
	void (*turn)(void); /* every millisecond; NULL: it ends with the last answer */
	uint64_t both_ns;   /* CLOCK_REALTIME when two requests had begun */
	uint32_t n_begun, n_ended, n_open;
} world;

static struct client {
	int fd;
	size_t n;
	char answer[MAX_ANSWER];
} clients[MAX_CLIENTS];

/* ---- The broker ---- */

/* A window that was flushed is still on its way when it is asked the first times. */
static void be_broker(int sock)
{
	struct message m;
	int fds[2];

	while (message_recv(sock, &m, fds, 0) > 0) {
		struct message answer = {.type = MESSAGE_ANSWER, .seq = m.seq};

		if (m.type == MESSAGE_ASK_FLUSH) {
			if (shared->n_flushes++ == 0)
				shared->flushed_ns = clock_realtime_ns();
		} else {
			struct statistics s = {.flushing = ++shared->n_asked < N_BUSY,
					       .rate_hz = 100,
					       .n_events = 1,
					       .events = {"cpu-clock"}};

			answer.type = MESSAGE_ANSWER_STATISTICS;
			answer.answer_statistics.n = sizeof(s);
			memcpy(answer.answer_statistics.bytes, &s, sizeof(s));
		}
		if (message_send(sock, &answer, NULL, 0) < 0)
			break;
	}
	_exit(0);
}

static void start_broker(void)
{
	int pair[2];

	*shared = (struct shared){.n_flushes = 0};
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
	world.broker = fork();
	if (world.broker == 0) {
		(void)close(pair[0]);
		be_broker(pair[1]);
	}
	(void)close(pair[1]);
	world.ask = (struct ask){.sock = pair[0]};
}

/* ---- The server, and its clients ---- */

static void on_request(void *ctx, struct serve_exchange *x, const char *path)
{
	pulls_begin(world.pulls, x, serve_query(x, "seconds"));
	if (++world.n_begun == 2)
		world.both_ns = clock_realtime_ns();
}

static void on_done(void *ctx, struct serve_exchange *x)
{
	world.n_ended++;
	pulls_end(world.pulls, x);
}

static void on_drain(void *ctx)
{
	if (world.on_drain)
		world.on_drain();
}

static void on_late(void *ctx)
{
	loop_exit(world.loop, 1);
}

static void on_turn(void *ctx)
{
	if (world.turn)
		world.turn();
	if (!world.turn && world.n_open == 0)
		loop_exit(world.loop, 0);
}

static void begin(void)
{
	const struct serve_callbacks callbacks = {.request = on_request, .done = on_done};
	struct pulls_options options = {
		.ask = &world.ask, .info = &synthetic_info, .profile_bytes = 64 << 20};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
	socklen_t n = sizeof(at);
	char error[256] = "";

	memset(&world, 0, sizeof(world));
	CHECK(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 16) == 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)&at, &n), ==, 0);
	world.port = ntohs(at.sin_port);
	CHECK_INT(loop_new(&world.loop), ==, 0);
	(void)loop_add_timer(world.loop, 60 * NSEC_PER_SEC, 0, on_late, NULL);
	(void)loop_add_timer(world.loop, 0, NSEC_PER_MSEC, on_turn, NULL);
	start_broker();
	options.loop = world.loop;
	options.drain = on_drain;
	CHECK_INT(pulls_new(&world.pulls, &options), ==, 0);
	r = serve_new(&world.serve, world.loop, fd, &callbacks, error, sizeof(error));
	if (r == -ENOENT || r == -EOPNOTSUPP)
		SKIP("%s", error);
	CHECK_INT(r, ==, 0);
}

static void end(void)
{
	serve_free(world.serve);
	CHECK_INT(world.n_ended, ==, world.n_begun);
	pulls_free(world.pulls);
	loop_free(world.loop);
	(void)close(world.ask.sock);
	(void)kill(world.broker, SIGKILL);
}

static void on_answer(void *ctx, int fd, uint32_t events)
{
	struct client *c = ctx;
	ssize_t n = read(fd, c->answer + c->n, sizeof(c->answer) - 1 - c->n);

	if (n > 0) {
		c->n += (size_t)n;
		return;
	}
	c->answer[c->n] = '\0';
	loop_remove_fd(world.loop, fd);
	(void)close(fd);
	world.n_open--;
}

static struct client *request(uint32_t i, const char *query)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(world.port)};
	struct client *c = &clients[i];

	c->n = 0;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(c->fd, (const struct sockaddr *)&to, sizeof(to)), ==, 0);
	(void)dprintf(c->fd, "GET /%s HTTP/1.0\r\nHost: localhost\r\n\r\n", query);
	world.n_open++;
	CHECK_INT(loop_add_fd(world.loop, c->fd, EPOLLIN, on_answer, c), ==, 0);
	return c;
}

static void wait_for_answers(void)
{
	CHECK_INT(loop_run(world.loop), ==, 0);
}

static void check_status(const struct client *c, int status, const char *part)
{
	int n = 0;

	CHECK_INT(sscanf(c->answer, "HTTP/1.%*d %d", &n), ==, 1);
	CHECK_INT(n, ==, status);
	CHECK(strstr(c->answer, part) != NULL);
}

/* ---- Payloads ---- */

/* Twelve samples of CPU time, of which n_now are of now and the others of other times; and as many
 * page faults of now. */
static void give_payload(uint32_t n_now, bool only_faults)
{
	char *bytes = NULL;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);
	int fd = memfd_create("payload", MFD_CLOEXEC);
	struct profile p;

	synthetic_small(&p);
	synthetic_add_types(&p, 1, 12);
	for (uint32_t t = 0; t < p.n_types; t++) {
		for (uint32_t i = 0; i < p.types[t].samples.n; i++) {
			uint64_t at = world.both_ns;

			if (t == 0 && i >= n_now)
				at += i % 2 ? 30 * NSEC_PER_SEC : -30 * NSEC_PER_SEC;
			p.types[t].samples.items[i].time_unix_ns = at;
		}
	}
	p.n_types = 2; /* the others are CPU time as well, or need not be here */
	if (only_faults)
		p.types[0].samples.n = 0;
	p.start_unix_ns = world.both_ns - 60 * NSEC_PER_SEC;
	p.end_unix_ns = world.both_ns + 60 * NSEC_PER_SEC;
	CHECK_INT(render_otlp_file(&p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_INT(write(fd, bytes, n), ==, (ssize_t)n);
	pulls_payload(world.pulls, fd);
	(void)close(fd);
	free(bytes);
	p.n_types = 4;
	profile_deinit(&p);
}

/* Samples of CPU time in an answer. */
static int64_t count(const struct client *c)
{
	static uint8_t bytes[MAX_ANSWER];
	const char *body = strstr(c->answer, "\r\n\r\n") + 4;
	z_stream z = {.next_in = (Bytef *)body,
		      .avail_in = (uInt)(c->n - (size_t)(body - c->answer)),
		      .next_out = bytes,
		      .avail_out = sizeof(bytes)};
	Perftools__Profiles__Profile *pb;
	int64_t sum = 0;

	CHECK_INT(inflateInit2(&z, 15 + 16), ==, Z_OK);
	CHECK_INT(inflate(&z, Z_FINISH), ==, Z_STREAM_END);
	pb = perftools__profiles__profile__unpack(NULL, z.total_out, bytes);
	CHECK(pb != NULL);
	CHECK_INT(pb->n_sample_type, ==, 2);
	CHECK_STR(pb->string_table[pb->sample_type[1]->type], "cpu");
	for (size_t i = 0; i < pb->n_sample; i++)
		sum += pb->sample[i]->value[0];
	perftools__profiles__profile__free_unpacked(pb, NULL);
	(void)inflateEnd(&z);
	return sum;
}

/* ---- Cases ---- */

static void give_last_payload(void)
{
	CHECK_INT(shared->n_flushes, ==, 1);
	CHECK_INT(shared->n_asked, >=, N_BUSY);
	give_payload(3, false);
	world.on_drain = NULL;
}

static void give_payloads(void)
{
	if (world.n_begun < 2)
		return;
	give_payload(12, true);
	give_payload(5, false);
	world.on_drain = give_last_payload;
	(void)request(2, "?seconds=2");
	world.turn = NULL;
}

/* A first payload without CPU time, one with, and one that the flush brings; one flush for both. */
static void test_two_at_a_time(void)
{
	uint64_t start_ns = clock_realtime_ns();
	struct client *first, *second;

	begin();
	first = request(0, "?seconds=2");
	second = request(1, "?seconds=2");
	world.turn = give_payloads;
	wait_for_answers();
	check_status(&clients[2], 503, "retry in");
	CHECK(strcasestr(clients[2].answer, "\r\nretry-after: ") != NULL);
	check_status(first, 200, "profile.pb.gz");
	check_status(second, 200, "profile.pb.gz");
	CHECK_INT(count(first), ==, 8);
	CHECK_INT(count(second), ==, 8);
	CHECK_INT(shared->n_flushes, ==, 1);
	CHECK_INT(shared->flushed_ns, >=, start_ns + 2 * NSEC_PER_SEC);
	end();
}

/* Nothing ran: an answer all the same, with the type of its samples. */
static void test_nothing(void)
{
	const struct client *c;

	begin();
	c = request(0, "?seconds=1");
	wait_for_answers();
	check_status(c, 200, "profile.pb.gz");
	CHECK_INT(count(c), ==, 0);
	end();
}

static void test_bad_seconds(void)
{
	static const char *const queries[MAX_CLIENTS] = {"?seconds=0", "?seconds=601",
							 "?seconds=1x", "?seconds="};

	begin();
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		(void)request(i, queries[i]);
	wait_for_answers();
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		check_status(&clients[i], 400, "1 .. 600");
	end();
}

static void give_damage(void)
{
	int fd = memfd_create("payload", MFD_CLOEXEC);

	CHECK_INT(write(fd, "\377\377\377\377", 4), ==, 4);
	pulls_payload(world.pulls, fd);
	(void)close(fd);
}

/* Fails one after the other, more often than there are places. */
static void fail_next(void)
{
	if (world.n_open == 1 && world.n_begun == world.n_ended + 1) {
		if (world.n_begun % 2)
			pulls_fail(world.pulls, "a reason");
		else
			give_damage();
	} else if (world.n_open == 0) {
		check_status(&clients[0], 503, world.n_begun % 2 ? "a reason" : "cannot be read");
		if (world.n_begun < 2 * PULLS_MAX)
			(void)request(0, "");
		else
			world.turn = NULL;
	}
}

/* What is missing makes no profile, and its place is free again. */
static void test_failures(void)
{
	begin();
	(void)request(0, "");
	world.turn = fail_next;
	wait_for_answers();
	CHECK_INT(world.n_begun, ==, 2 * PULLS_MAX);
	CHECK_INT(shared->n_flushes, ==, 0);
	end();
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	RUN(test_two_at_a_time);
	RUN(test_nothing);
	RUN(test_bad_seconds);
	RUN(test_failures);
	return 0;
}
