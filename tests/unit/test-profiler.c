/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler as a process, on real page faults of a child, between a broker and a symbolizer that
 * the test plays. The kernel's own count is the truth: each fault is in a window, or lies between
 * two where a profiler was killed.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/kept-blocks.h"
#include "src/process/role.h"
#include "src/process/setup.h"
#include "src/profiler/setup.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"

#define MAX_CPUS 1024
#define PAGES	 300

static struct sample_cpu cpus[MAX_CPUS];
static struct ring rings[MAX_CPUS], sidebands[MAX_CPUS];
static int n_cpus;
static struct setup_profiler setup;
static struct ledger *ledger;
static int ledger_fd, blocks_fd;

/* The child whose faults are counted: PAGES for each byte. */
static struct {
	pid_t pid;
	int order, done;
} victim;

static struct {
	pid_t pid;
	int control, symbolizer, status_fd;
	struct status_page *status;
	uint64_t n_flushed;
} it;

static void be_victim(int order, int done)
{
	char c;

	while (read(order, &c, 1) == 1) {
		volatile char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int i = 0; i < PAGES; i++)
			pages[i * 4096] = 1;
		if (write(done, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static void start_victim(void)
{
	int order[2], done[2];

	CHECK_INT(pipe(order), ==, 0);
	CHECK_INT(pipe(done), ==, 0);
	victim.pid = fork();
	CHECK_INT(victim.pid, >=, 0);
	if (victim.pid == 0) {
		(void)close(order[1]);
		be_victim(order[0], done[1]);
	}
	(void)close(order[0]);
	(void)close(done[1]);
	victim.order = order[1];
	victim.done = done[0];
}

static void fault(void)
{
	char c = 'x';

	CHECK_INT(write(victim.order, &c, 1), ==, 1);
	CHECK_INT(read(victim.done, &c, 1), ==, 1);
}

/* As the broker does: the rings are held here, whoever reads them. */
static void open_events(void)
{
	struct sample_options *o = &setup.events[0].options;
	struct sample_features *f = &setup.events[0].features;
	int online[MAX_CPUS];
	char error[512];

	*o = (struct sample_options){.period = 1,
				     .only_user = true,
				     .regs_mask = sample_user_regs,
				     .stack_bytes = 256,
				     .ring_bytes = 1 << 20,
				     .sideband_bytes = 1 << 16};
	CHECK_INT(sample_event_parse("page-faults", &o->event, error, sizeof(error)), ==, 0);
	if (sample_probe(o, victim.pid, f, error, sizeof(error)) < 0)
		SKIP("no perf events: %s", error);
	n_cpus = sample_online_cpus(online, MAX_CPUS);
	CHECK_INT(n_cpus, >, 0);
	for (int i = 0; i < n_cpus; i++) {
		struct sample_cpu *c = &cpus[i];
		uint64_t bytes = o->ring_bytes, sideband = o->sideband_bytes;

		if (sample_open_cpu(o, f, online[i], victim.pid, NULL, c, error, sizeof(error)) < 0)
			SKIP("no perf events: %s", error);
		if (ring_map(&rings[i], c->sample_fd, &bytes, true) < 0 ||
		    ring_map(&sidebands[i], c->sideband_fd, &sideband, true) < 0)
			SKIP("no locked memory for the rings");
		c->sample_ring_bytes = bytes;
		c->sideband_ring_bytes = sideband;
		CHECK_INT(sample_enable_cpu(c, true), ==, 0);
	}
}

static uint64_t kernel_count(void)
{
	uint64_t sum = 0, value[3];

	for (int i = 0; i < n_cpus; i++) {
		CHECK_INT(read(cpus[i].sample_fd, value, sizeof(value)), >=, 8);
		sum += value[0];
	}
	return sum;
}

static void make_pair(int pair[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
}

static void become_profiler(int control, int ask)
{
	if (dup2(control, 1000) < 0 || dup2(ask, 1001) < 0 || dup2(1000, PROTOCOL_CONTROL_FD) < 0 ||
	    dup2(1001, PROTOCOL_ASK_FD) < 0)
		_exit(125);
	for (int fd = 5; fd < 1010; fd++)
		(void)close(fd);
	_exit(role_profiler_main());
}

static void send_cpus(void)
{
	for (int i = 0; i < n_cpus; i++) {
		const int fds[] = {cpus[i].sample_fd, cpus[i].sideband_fd};
		struct message m = {.type = MESSAGE_CPU_ADD};

		m.cpu.cpu = cpus[i].cpu;
		m.cpu.sample_ring_bytes = cpus[i].sample_ring_bytes;
		m.cpu.sideband_ring_bytes = cpus[i].sideband_ring_bytes;
		CHECK_INT(message_send(it.control, &m, fds, 2), ==, 0);
	}
}

/* Nobody answers what it asks. */
static void start(void)
{
	struct message m = {.type = MESSAGE_PEER};
	int control[2], ask[2], peer[2];

	make_pair(control);
	make_pair(ask);
	make_pair(peer);
	it.status_fd = status_page_new(&it.status);
	CHECK_INT(it.status_fd, >=, 0);
	it.pid = fork();
	CHECK_INT(it.pid, >=, 0);
	if (it.pid == 0)
		become_profiler(control[1], ask[1]);
	(void)close(control[1]);
	(void)close(ask[0]);
	(void)close(ask[1]);
	it.control = control[0];
	it.n_flushed = 0;
	CHECK_INT(setup_send(it.control, &setup, sizeof(setup), it.status_fd), ==, 0);
	CHECK_INT(setup_send_text(it.control, TEXT_LEDGER, "", ledger_fd), ==, 0);
	CHECK_INT(setup_send_text(it.control, TEXT_BLOCKS, "", blocks_fd), ==, 0);
	CHECK_INT(setup_send_start(it.control), ==, 0);
	send_cpus();
	m.peer.peer = PEER_SYMBOLIZER;
	CHECK_INT(message_send(it.control, &m, &peer[1], 1), ==, 0);
	(void)close(peer[1]);
	it.symbolizer = peer[0];
}

static void kill_it(void)
{
	CHECK_INT(kill(it.pid, SIGKILL), ==, 0);
	CHECK_INT(waitpid(it.pid, NULL, 0), ==, it.pid);
	(void)close(it.control);
	(void)close(it.symbolizer);
	(void)close(it.status_fd);
	(void)munmap(it.status, sizeof(*it.status));
}

/* The next window; it is settled, and so is what goes ahead of it. */
static struct message take_window(void)
{
	struct message m, done = {.type = MESSAGE_WINDOW_DONE};
	int fds[2];

	do {
		CHECK_INT(message_recv(it.symbolizer, &m, fds, 0), ==, 1);
		(void)close(fds[0]);
	} while (m.type != MESSAGE_WINDOW);
	done.item.id = m.window.id;
	CHECK_INT(message_send(it.symbolizer, &done, NULL, 0), ==, 0);
	return m;
}

static struct message flush(void)
{
	struct message m = {.type = MESSAGE_FLUSH};

	m.flush.id = ++it.n_flushed;
	CHECK_INT(message_send(it.control, &m, NULL, 0), ==, 0);
	return take_window();
}

static void wait_until_read(uint64_t n)
{
	struct sample_tally t;

	do {
		(void)usleep(1000);
		t = ledger_sum(ledger, 0);
	} while (t.samples + t.lost < n);
}

/* A flush closes the window with all that the rings hold, and says when it is settled. */
static void test_flush(void)
{
	struct message m;

	start();
	fault();
	m = flush();
	CHECK_INT(m.window.begin.events[0].samples, ==, 0);
	CHECK_INT(m.window.end.events[0].samples + m.window.end.events[0].lost, ==, kernel_count());
	CHECK_INT(m.window.n_samples, ==, m.window.end.events[0].samples);
	CHECK_INT(m.window.n_samples, >=, PAGES);
	while (__atomic_load_n(&it.status->flushed, __ATOMIC_ACQUIRE) < 1)
		(void)usleep(1000);
}

/* It dies with an open window; the next one says where it goes on. */
static void test_killed(void)
{
	struct place_of_event last;
	struct message m = flush();

	last = m.window.end.events[0];
	for (int i = 0; i < 3; i++) {
		uint64_t before = kernel_count(), died;

		fault();
		wait_until_read(kernel_count());
		died = kernel_count() - before;
		kill_it();
		start();
		fault();
		m = flush();
		CHECK_INT(m.window.begin.events[0].samples - last.samples +
				  m.window.begin.events[0].lost - last.lost,
			  ==, died);
		last = m.window.end.events[0];
		CHECK_INT(last.samples + last.lost, ==, kernel_count());
		CHECK_INT(m.window.n_samples, ==, last.samples - m.window.begin.events[0].samples);
	}
}

/* Told to leave, it hands over what is left, and goes when that is settled. */
static void test_stop(void)
{
	const struct message stop = {.type = MESSAGE_STOP};
	struct message m;
	int status;

	fault();
	CHECK_INT(message_send(it.control, &stop, NULL, 0), ==, 0);
	m = take_window();
	CHECK_INT(m.window.end.events[0].samples + m.window.end.events[0].lost, ==, kernel_count());
	CHECK_INT(waitpid(it.pid, &status, 0), ==, it.pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	(void)alarm(600);
	setup.n_events = 1;
	setup.interval_ns = UINT64_C(3600) * 1000000000; /* windows close when they are told to */
	setup.window_memory_bytes = 1 << 24;
	setup.unwind_rows_bytes = 1 << 22;
	setup.max_processes = 64;
	setup.max_open_files = 64;
	setup.max_frames = 64;
	setup.common.privileges.uid = setup.common.privileges.gid = (uint32_t)-1;
	setup.common.privileges.max_open_files = 4096;
	setup.common.privileges.parent_pid = (uint32_t)getpid();
	ledger_fd = ledger_new(&ledger);
	CHECK_INT(ledger_fd, >=, 0);
	blocks_fd = kept_blocks_new();
	CHECK_INT(blocks_fd, >=, 0);
	start_victim();
	open_events();
	RUN(test_flush);
	RUN(test_killed);
	RUN(test_stop);
	(void)close(victim.order);
	CHECK_INT(waitpid(victim.pid, NULL, 0), ==, victim.pid);
	return 0;
}
