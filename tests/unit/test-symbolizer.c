/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolizer as a process, between a profiler, an exporter and a broker that the test plays:
 * when it settles a window, and what it counts.
 */
#include "config.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/role.h"
#include "src/process/setup.h"
#include "src/profile/profile.h"
#include "src/profile/window.h"
#include "src/symbolizer/setup.h"
#include "tests/unit/test.h"
#include "util/fdmsg.h"

#define N_SAMPLES 12  /* of a window */
#define N_MANY	  300 /* processes, each with a sample */
#define START_NS  UINT64_C(1700000000000000000)

static struct {
	pid_t pid;
	int control, profiler, exporter, status_fd;
	struct status_page *status;
} it;

/* Both ends wait; alarm() ends a test that would wait for ever. */
static void make_pair(int pair[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
}

static void become_symbolizer(int control, int ask)
{
	if (dup2(control, 10) < 0 || dup2(ask, 11) < 0 || dup2(10, PROTOCOL_CONTROL_FD) < 0 ||
	    dup2(11, PROTOCOL_ASK_FD) < 0)
		_exit(125);
	for (int fd = 5; fd < 64; fd++)
		(void)close(fd);
	_exit(role_symbolizer_main());
}

static void give_peer(enum peer who, int *ret)
{
	struct message m = {.type = MESSAGE_PEER};
	int pair[2];

	make_pair(pair);
	m.peer.peer = who;
	CHECK_INT(message_send(it.control, &m, &pair[1], 1), ==, 0);
	(void)close(pair[1]);
	*ret = pair[0];
}

static void start(const struct setup_symbolizer *setup, int output)
{
	int control[2], ask[2];

	(void)alarm(600);
	make_pair(control);
	make_pair(ask);
	it.status_fd = status_page_new(&it.status);
	CHECK_INT(it.status_fd, >=, 0);
	it.pid = fork();
	CHECK_INT(it.pid, >=, 0);
	if (it.pid == 0)
		become_symbolizer(control[1], ask[1]);
	(void)close(control[1]);
	(void)close(ask[0]);
	(void)close(ask[1]);
	it.control = control[0];
	CHECK_INT(setup_send(it.control, setup, sizeof(*setup), it.status_fd), ==, 0);
	if (output >= 0) {
		CHECK_INT(setup_send_text(it.control, TEXT_OUTPUT_FORMAT, "folded", -1), ==, 0);
		CHECK_INT(setup_send_text(it.control, TEXT_OUTPUT, "test.folded", output), ==, 0);
	}
	CHECK_INT(setup_send_start(it.control), ==, 0);
	give_peer(PEER_PROFILER, &it.profiler);
	it.exporter = -1;
}

static struct setup_symbolizer daemon_setup(void)
{
	struct setup_symbolizer s = {.symbols_bytes = 1 << 24,
				     .profile_bytes = 1 << 26,
				     .max_open_files = 64,
				     .switches = 1};

	s.common.privileges.uid = s.common.privileges.gid = (uint32_t)-1;
	s.common.privileges.max_open_files = 1024;
	s.common.privileges.parent_pid = (uint32_t)getpid();
	return s;
}

/* What it sends next; its descriptor is closed. */
static void expect(int sock, enum message_type type, struct message *ret)
{
	int fds[2];

	CHECK_INT(message_recv(sock, ret, fds, 0), ==, 1);
	CHECK_INT(ret->type, ==, type);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static void check_silent(int sock)
{
	struct message m;
	int fds[2];

	CHECK_INT(message_recv(sock, &m, fds, MSG_DONTWAIT), ==, -EAGAIN);
}

static void send_bytes(uint64_t id, uint64_t begin, int fd)
{
	struct message m = {.type = MESSAGE_WINDOW};

	m.window.id = id;
	m.window.n_samples = N_SAMPLES;
	m.window.begin.events[0].samples = begin;
	m.window.end.events[0].samples = begin + N_SAMPLES;
	/* Of a thread there are more switches than samples. */
	m.window.begin.events[1].samples = 100 * begin;
	m.window.end.events[1].samples = 100 * (begin + N_SAMPLES);
	m.window.switches = 1;
	CHECK_INT(message_send(it.profiler, &m, &fd, 1), ==, 0);
	(void)close(fd);
}

static void add_stack(struct profile *p, struct profile_sample *ret)
{
	const struct profile_type type = {.period_ns = 10000000,
					  .rate_hz = 100,
					  .event = strtab_put(&p->strings, "cpu-clock")};
	const struct profile_process process = {.pid = 42,
						.comm = strtab_put(&p->strings, "worker")};
	const struct profile_module module = {.uid = PROFILE_UID_FIRST_FILE,
					      .kind = PROFILE_MODULE_FILE,
					      .process = PROFILE_NONE,
					      .path = strtab_put(&p->strings, "/bin/worker")};
	uint32_t row = profile_add_process(p, &process), frame;

	profile_set_type(p, 0, &type);
	ret->thread = profile_add_thread(p, row, 42, process.comm);
	frame = profile_add_frame(p, profile_add_module(p, &module), 0x1234);
	ret->stack = profile_add_stack(p, &frame, 1, 0);
}

/* A window that begins behind so many samples. */
static void send_window(uint64_t id, uint64_t begin)
{
	struct profile_sample sample = {.time_unix_ns = START_NS, .value = 1, .n = 1};
	struct profile p;
	int fd;

	profile_init(&p, 1 << 20);
	add_stack(&p, &sample);
	for (int i = 0; i < N_SAMPLES; i++, sample.time_unix_ns++)
		CHECK(profile_add_sample(&p, &sample));
	p.start_unix_ns = START_NS;
	p.end_unix_ns = sample.time_unix_ns;
	p.types[0].counters[PROFILE_SAMPLES] = N_SAMPLES;
	fd = window_write(&p);
	CHECK_INT(fd, >=, 0);
	send_bytes(id, begin, fd);
	profile_deinit(&p);
}

/* N_MANY processes that no other window has, with long names: 150 KiB of rows. */
static void send_strangers(uint64_t id)
{
	struct profile_sample sample = {.time_unix_ns = START_NS, .value = 1, .n = 1};
	char text[400];
	struct profile p;

	profile_init(&p, 1 << 22);
	add_stack(&p, &sample);
	for (unsigned int i = 0; i < N_MANY; i++) {
		struct profile_process process = {.pid = (uint32_t)id * N_MANY + i};

		(void)snprintf(text, sizeof(text), "/tmp/%0*u", 300, process.pid);
		process.executable_path = process.comm = strtab_put(&p.strings, text);
		sample.thread = profile_add_thread(&p, profile_add_process(&p, &process),
						   process.pid, process.comm);
		CHECK(profile_add_sample(&p, &sample));
	}
	p.start_unix_ns = START_NS;
	p.end_unix_ns = START_NS + 1;
	send_bytes(id, (id - 1) * N_SAMPLES, window_write(&p));
	profile_deinit(&p);
}

static void expect_settled(uint64_t id)
{
	struct message m;

	expect(it.profiler, MESSAGE_WINDOW_DONE, &m);
	CHECK_INT(m.item.id, ==, id);
}

static uint64_t counter(enum profile_counter c)
{
	return __atomic_load_n(&it.status->counts.counters[c], __ATOMIC_ACQUIRE);
}

static uint64_t windows_named(void)
{
	return __atomic_load_n(&it.status->counts.windows_named, __ATOMIC_ACQUIRE);
}

/* It has taken all that we sent, and so is through with all but the last. */
static void wait_until_taken(void)
{
	for (int n = 1; n > 0; (void)usleep(1000))
		CHECK_INT(ioctl(it.profiler, SIOCOUTQ, &n), ==, 0);
}

/* Asked to leave when the profiler has left, it does, and says how its work went. */
static void stop(struct message *ret)
{
	const struct message m = {.type = MESSAGE_STOP};
	int status;

	(void)close(it.profiler);
	CHECK_INT(message_send(it.control, &m, NULL, 0), ==, 0);
	expect(it.control, MESSAGE_RESULT, ret);
	CHECK_INT(ret->result.code, ==, 0);
	CHECK_INT(waitpid(it.pid, &status, 0), ==, it.pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)close(it.control);
	if (it.exporter >= 0)
		(void)close(it.exporter);
	(void)close(it.status_fd);
	(void)munmap(it.status, sizeof(*it.status));
}

/* A window is settled when its payloads are with the exporter, and not before. */
static void test_settles_what_is_sent(void)
{
	const struct setup_symbolizer setup = daemon_setup();
	struct message m;

	start(&setup, -1);
	send_window(1, 0);
	send_window(2, N_SAMPLES);
	wait_until_taken();
	check_silent(it.profiler);
	/* Another symbolizer would count them, and what it makes of them, again. */
	CHECK_INT(counter(PROFILE_SAMPLES), ==, 0);
	CHECK_INT(windows_named(), ==, 0);
	CHECK_INT(it.status->counts.payloads, ==, 0);
	give_peer(PEER_EXPORTER, &it.exporter);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	CHECK_INT(m.item.n_samples, ==, N_SAMPLES);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	expect_settled(1);
	expect_settled(2);
	CHECK_INT(counter(PROFILE_SAMPLES), ==, 2 * N_SAMPLES);
	CHECK_INT(windows_named(), ==, 2);
	CHECK_INT(it.status->counts.payloads, ==, 2);
	CHECK_INT(it.status->places[it.status->turn & 1].events[0].samples, ==, 2 * N_SAMPLES);
	stop(&m);
}

/* The exporter dies with what it was sent, while we leave: another one gets it. */
static void test_stays_for_an_exporter(void)
{
	const struct message end = {.type = MESSAGE_STOP};
	const struct setup_symbolizer setup = daemon_setup();
	struct message m;

	start(&setup, -1);
	give_peer(PEER_EXPORTER, &it.exporter);
	send_window(1, 0);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	expect_settled(1);
	CHECK_INT(message_send(it.control, &end, NULL, 0), ==, 0);
	(void)close(it.exporter);
	(void)close(it.profiler);
	it.profiler = -1;
	(void)usleep(400000); /* longer than it waits for one that is there */
	give_peer(PEER_EXPORTER, &it.exporter);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	CHECK_INT(m.item.n_samples, ==, N_SAMPLES);
	m = (struct message){.type = MESSAGE_PAYLOAD_DONE, .item.id = m.item.id};
	CHECK_INT(message_send(it.exporter, &m, NULL, 0), ==, 0);
	stop(&m);
}

/* What is missing between two windows, and behind the last one. */
static void test_counts_what_is_missing(void)
{
	const struct setup_symbolizer setup = daemon_setup();
	struct message m = {.type = MESSAGE_PLACE};

	start(&setup, -1);
	give_peer(PEER_EXPORTER, &it.exporter);
	send_window(1, 7);
	expect_settled(1);
	CHECK_INT(counter(PROFILE_SAMPLES_DIED), ==, 7);
	/* The second event is that of switches. */
	CHECK_INT(counter(PROFILE_SWITCHES_LOST), ==, 700);
	CHECK_INT(counter(PROFILE_SAMPLES), ==, 7 + N_SAMPLES);
	/* The profiler dies with a window in its socket: the next one takes nothing of it away. */
	send_window(2, 7 + N_SAMPLES);
	(void)close(it.profiler);
	give_peer(PEER_PROFILER, &it.profiler);
	send_window(3, 10 + 2 * N_SAMPLES);
	expect_settled(3);
	CHECK_INT(counter(PROFILE_SAMPLES_DIED), ==, 7 + 3);
	m.place.events[0].samples = 15 + 3 * N_SAMPLES;
	CHECK_INT(message_send(it.control, &m, NULL, 0), ==, 0);
	(void)close(it.profiler);
	it.profiler = -1;
	/* The page is there as long as we have it. */
	while (counter(PROFILE_SAMPLES_DIED) != 7 + 3 + 5) {
		const struct message end = {.type = MESSAGE_STOP};

		if (message_send(it.control, &end, NULL, 0) < 0)
			(void)usleep(1000);
	}
	CHECK_INT(waitpid(it.pid, NULL, 0), ==, it.pid);
	(void)close(it.control);
	(void)close(it.exporter);
	(void)close(it.status_fd);
	(void)munmap(it.status, sizeof(*it.status));
}

/* One before had settled the first, and died before it could say so. */
static void test_knows_what_was_settled(void)
{
	struct setup_symbolizer setup = daemon_setup();
	struct message m;

	setup.place.events[0].samples = N_SAMPLES;
	setup.place.events[1].samples = 100 * N_SAMPLES;
	start(&setup, -1);
	give_peer(PEER_EXPORTER, &it.exporter);
	send_window(1, 0);
	expect_settled(1);
	send_window(2, N_SAMPLES);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	expect_settled(2);
	check_silent(it.exporter);
	CHECK_INT(counter(PROFILE_SAMPLES), ==, N_SAMPLES);
	CHECK_INT(counter(PROFILE_SAMPLES_DIED), ==, 0);
	stop(&m);
}

/* Its memory that is in no file. */
static long anonymous_kib(void)
{
	char name[64], line[256];
	long kib = -1;
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/status", (int)it.pid);
	f = fopen(name, "re");
	while (f && kib < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "RssAnon: %ld", &kib);
	if (f)
		(void)fclose(f);
	return kib;
}

/* Processes that come and go for ever: what is kept of them all takes 14 MiB. */
static void test_forgets_what_is_past(void)
{
	const struct setup_symbolizer setup = daemon_setup();
	long kib = 0;
	struct message m;

	start(&setup, -1);
	give_peer(PEER_EXPORTER, &it.exporter);
	for (uint64_t id = 1; id <= 240; id++) {
		send_strangers(id);
		expect(it.exporter, MESSAGE_PAYLOAD, &m);
		CHECK_INT(m.item.n_samples, ==, N_MANY);
		m = (struct message){.type = MESSAGE_PAYLOAD_DONE, .item.id = m.item.id};
		CHECK_INT(message_send(it.exporter, &m, NULL, 0), ==, 0);
		expect_settled(id);
		kib = anonymous_kib() > kib ? anonymous_kib() : kib;
	}
	printf("%ld KiB at most\n", kib);
#ifndef WITH_SANITIZERS /* they keep what is freed */
	CHECK_INT(kib, <, 9 << 10);
#endif
	stop(&m);
}

/* A window that is none is counted and settled, and the next one is read. */
static void test_bad_window(void)
{
	const struct setup_symbolizer setup = daemon_setup();
	int bad = memfd_create("bad", MFD_CLOEXEC);
	struct message m;

	CHECK_INT(ftruncate(bad, 4096), ==, 0);
	start(&setup, -1);
	give_peer(PEER_EXPORTER, &it.exporter);
	send_bytes(1, 0, bad);
	expect_settled(1);
	CHECK_INT(counter(PROFILE_SAMPLES_DROPPED), ==, N_SAMPLES);
	send_window(2, N_SAMPLES);
	expect(it.exporter, MESSAGE_PAYLOAD, &m);
	CHECK_INT(m.item.n_samples, ==, N_SAMPLES);
	expect_settled(2);
	CHECK_INT(counter(PROFILE_SAMPLES), ==, 2 * N_SAMPLES);
	stop(&m);
}

/* All windows of a capture are in its file, which is written when it is asked to leave. */
static void test_capture(void)
{
	struct setup_symbolizer setup = daemon_setup();
	int output = memfd_create("output", MFD_CLOEXEC);
	unsigned long total = 0, n;
	char line[1024];
	struct message m;
	FILE *f;

	setup.capture = true;
	start(&setup, output);
	for (uint64_t i = 0; i < 3; i++) {
		send_window(i, i * N_SAMPLES);
		expect_settled(i);
	}
	CHECK_INT(lseek(output, 0, SEEK_END), ==, 0);
	stop(&m);
	CHECK_INT(m.result.written, ==, 1);
	CHECK_INT(lseek(output, 0, SEEK_SET), ==, 0);
	f = fdopen(output, "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		CHECK(strrchr(line, ' ') && sscanf(strrchr(line, ' '), "%lu", &n) == 1);
		total += n;
	}
	(void)fclose(f);
	CHECK_INT(total, ==, 3 * N_SAMPLES);
}

int main(void)
{
	RUN(test_settles_what_is_sent);
	RUN(test_stays_for_an_exporter);
	RUN(test_counts_what_is_missing);
	RUN(test_knows_what_was_settled);
	RUN(test_forgets_what_is_past);
	RUN(test_bad_window);
	RUN(test_capture);
	return 0;
}
