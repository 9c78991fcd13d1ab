/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in use by the attribution's header: records of picked and of freed blocks go in, some of
 * them lost, and what windows tell is held against what each process has. The broker that the
 * attribution asks is a thread here.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/filter.h"
#include "src/process/kept-blocks.h"
#include "src/profiler/attribute.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

enum {
	PICKED,
	ENDED,
	N_EVENTS,
	PID = 4711,
	OTHER_TID = 4712,
	CODE = 0x10000,
	CODE_BYTES = 0x10000,
	STACK = 0x7f0000,
	TABLE = 0x5000,
	BLOCK_BYTES = 1 << 20, /* of which each stands for itself, with this mean */
	MEAN = 4096,
};

/* Where x86-64 has the arguments of a function. */
enum { CX = 2, DX = 3, SI = 4, DI = 5, BP = 6, SP = 7, IP = 8 };
#define REGS                                                                                       \
	(1ull << CX | 1ull << DX | 1ull << SI | 1ull << DI | 1ull << BP | 1ull << SP | 1ull << IP)

static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask;
static struct filter filter;

/* What the broker sees of the process. */
static struct {
	uint64_t table[8]; /* what the library has in use; 0: nothing */
	uint32_t n_asked;  /* how often the table was asked for */
	uint32_t put_off;  /* how often it cannot be had now */
	bool has_ended, is_gone;
} process;

static int open_table(void)
{
	uint8_t *bytes = calloc(1, LIBRARY_TABLE_BYTES);
	int fd = memory_file_new("table");

	memcpy(bytes, process.table, sizeof(process.table));
	CHECK_INT(write(fd, bytes, LIBRARY_TABLE_BYTES), ==, LIBRARY_TABLE_BYTES);
	free(bytes);
	process.n_asked++;
	return fd;
}

static void *answer(void *ctx)
{
	const int *sock = ctx;
	struct message m, a;
	int fds[2];

	while (message_recv(*sock, &m, fds, 0) > 0) {
		_cleanup_close_ int fd = -EBADF;

		a = (struct message){.type = MESSAGE_ANSWER, .seq = m.seq};
		a.answer.error = -ENOENT;
		if (m.type == MESSAGE_ASK_TABLE && process.put_off > 0) {
			process.put_off--;
			a.answer.error = -EAGAIN;
		} else if (m.type == MESSAGE_ASK_TABLE && !process.is_gone &&
			   m.ask_table.address == TABLE) {
			fd = open_table();
			a.answer.error = 0;
		}
		if (m.type == MESSAGE_ASK_USER)
			a.type = MESSAGE_ANSWER_USER;
		if (m.type == MESSAGE_ASK_CGROUP_PATH)
			a.type = MESSAGE_ANSWER_TEXT;
		if (m.type == MESSAGE_ASK_PROCESS) {
			a.type = MESSAGE_ANSWER_PROCESS;
			a.answer_process.error = 0;
			a.answer_process.has_ended = process.has_ended;
		}
		CHECK_INT(message_send(*sock, &a, &fd, fd >= 0), ==, 0);
	}
	return NULL;
}

/* ---- Records ---- */

static void task(struct attribution *a, enum record_type type, uint32_t pid, uint32_t tid,
		 uint64_t time_ns)
{
	struct record r = {.type = type, .time_ns = time_ns, .pid = pid, .tid = tid};

	r.task.parent_pid = pid == tid ? 1 : pid;
	r.task.parent_tid = r.task.parent_pid;
	(void)attribution_record(a, &r);
}

static void start(struct attribution *a, uint64_t time_ns)
{
	struct record r = {.type = RECORD_COMM, .time_ns = time_ns, .pid = PID, .tid = PID};

	task(a, RECORD_FORK, PID, PID, time_ns);
	r.comm.comm = "made-up";
	r.comm.exec = true;
	(void)attribution_record(a, &r);
	r = (struct record){.type = RECORD_MMAP, .time_ns = time_ns, .pid = PID, .tid = PID};
	r.mmap.start = CODE;
	r.mmap.length = CODE_BYTES;
	r.mmap.path = "//anon";
	(void)attribution_record(a, &r);
}

/* A sample with these arguments, in a function that another one called. */
static void call(struct attribution *a, uint32_t event, uint32_t tid, const uint64_t *args,
		 uint64_t time_ns)
{
	const uint64_t words[] = {STACK + 32, CODE + 0x101, 0xabab, 0xabab, 0, 0};
	const uint64_t regs[] = {args[3], args[2], args[1], args[0], STACK, STACK, CODE + 0x200};
	struct record r = {
		.type = RECORD_SAMPLE, .index = event, .time_ns = time_ns, .pid = PID, .tid = tid};

	r.sample.period = 1;
	r.sample.ip = CODE + 0x200;
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r.sample.user_regs = regs;
	r.sample.user_regs_valid = REGS;
	r.sample.stack = (const uint8_t *)words;
	r.sample.n_stack = r.sample.max_stack = sizeof(words);
	(void)attribution_record(a, &r);
}

static void allocate(struct attribution *a, uint32_t tid, uint64_t block, uint64_t time_ns)
{
	const uint64_t args[] = {block, BLOCK_BYTES, MEAN, TABLE};

	call(a, PICKED, tid, args, time_ns);
}

static void release(struct attribution *a, uint32_t tid, uint64_t block, uint64_t time_ns)
{
	const uint64_t args[] = {block, 0, 0, 0};

	call(a, ENDED, tid, args, time_ns);
}

static struct attribution *make_attribution(bool capture)
{
	static struct setup_profiler setup;
	struct attribution *a = NULL;

	setup = (struct setup_profiler){.n_events = N_EVENTS,
					.capture = capture,
					.window_memory_bytes = 4 << 20,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		struct setup_event *e = &setup.events[i];

		e->options = (struct sample_options){.index = i, .period = 1, .regs_mask = REGS};
		e->options.use = i == PICKED ? SAMPLE_USE_PICKED : SAMPLE_USE_ENDED;
		e->options.stack_bytes = 4096;
		e->features.clockid = e->features.comm_exec = true;
	}
	memset(&process, 0, sizeof(process));
	CHECK_INT(attribution_new(&a, &role, &ask, &setup, &filter, NULL), ==, 0);
	start(a, 100);
	return a;
}

/* ---- Windows ---- */

static uint32_t n_not_seen; /* stacks of another profiler */

/* In the code of the process, which is known for as long as it has blocks. */
static void check_stack(const struct profile *p, uint32_t stack)
{
	const uint32_t *rows;
	uint32_t n;

	rows = profile_stack_frames(p, stack, &n);
	if (n == 1 && profile_is_marked(p, rows[0])) {
		CHECK_INT(p->frames.items[rows[0]].address, ==, PROFILE_MARKER_NOT_SEEN);
		n_not_seen++;
		return;
	}
	CHECK_INT(n, ==, 2);
	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(p->modules.items[p->frames.items[rows[i]].module].kind, ==,
			  PROFILE_MODULE_JIT);
}

static int64_t sum(const struct attribution *a, uint32_t type)
{
	const struct profile *p = attribution_profile((struct attribution *)a);
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->types[type].samples.n; i++) {
		const struct profile_sample *s = &p->types[type].samples.items[i];

		sum += s->value;
		check_stack(p, s->stack);
	}
	return sum;
}

/* Closes a window, and expects so many blocks allocated and in use in it. */
static void expect(struct attribution *a, uint64_t time_ns, uint32_t allocated, uint32_t in_use)
{
	attribution_close(a, time_ns, false);
	CHECK_INT(sum(a, PICKED), ==, (int64_t)allocated * BLOCK_BYTES);
	CHECK_INT(sum(a, ENDED), ==, (int64_t)in_use * BLOCK_BYTES);
	attribution_next_window(a);
}

static void lose(struct attribution *a, uint32_t event)
{
	struct sample_losses lost = {.sideband = 0};

	lost.samples[event] = 1;
	attribution_add_lost(a, lost);
}

/* ---- Cases ---- */

static void test_a_capture_tells_at_its_end(void)
{
	struct attribution *a = make_attribution(true);

	allocate(a, PID, 0x1000, 200);
	allocate(a, PID, 0x2000, 210);
	release(a, PID, 0x2000, 220);
	expect(a, 300, 2, 0);
	attribution_end(a);
	expect(a, 400, 0, 1);
	CHECK_INT(process.n_asked, ==, 0);
	attribution_free(a);
}

/* The end of a block was lost in a window that is not the last one of the capture. */
static void test_a_capture_loses_an_end(void)
{
	struct attribution *a = make_attribution(true);

	allocate(a, PID, 0x1000, 200);
	allocate(a, PID, 0x2000, 210);
	process.table[0] = 0x1000;
	lose(a, ENDED);
	expect(a, 300, 2, 0);
	CHECK_INT(process.n_asked, ==, 1);
	/* Known by then, so the process needs not be there any more. */
	process.table[0] = 0;
	expect(a, 400, 0, 0);
	attribution_end(a);
	expect(a, 500, 0, 1);
	CHECK_INT(process.n_asked, ==, 1);
	attribution_free(a);
}

/* The broker has spent the time that it has for strangers. */
static void test_a_look_is_put_off(void)
{
	struct attribution *a = make_attribution(false);

	allocate(a, PID, 0x1000, 200);
	lose(a, ENDED);
	process.put_off = 1;
	expect(a, 300, 1, 1);
	expect(a, 400, 0, 0);
	expect(a, 500, 0, 0);
	CHECK_INT(process.n_asked, ==, 1);
	attribution_free(a);
}

static void test_a_daemon_loses_an_end(void)
{
	struct attribution *a = make_attribution(false);

	allocate(a, PID, 0x1000, 200);
	allocate(a, PID, 0x2000, 210);
	expect(a, 300, 2, 2);
	process.table[0] = 0x1000;
	lose(a, ENDED);
	expect(a, 400, 0, 1);
	expect(a, 500, 0, 1);
	CHECK_INT(process.n_asked, ==, 1);
	attribution_free(a);
}

/* In a capture a process is told of once, when it ends. */
static void test_a_process_ends(void)
{
	struct attribution *a = make_attribution(true);

	allocate(a, PID, 0x1000, 200);
	task(a, RECORD_EXIT, PID, PID, 220);
	process.has_ended = true;
	expect(a, 300, 1, 1);
	attribution_end(a);
	expect(a, 400, 0, 0);
	attribution_free(a);
}

/* The main thread ends, and another one goes on: it frees, and allocates more. */
static void test_threads_outlive_the_main_one(void)
{
	for (int capture = 0; capture < 2; capture++) {
		struct attribution *a = make_attribution(capture);

		task(a, RECORD_FORK, PID, OTHER_TID, 150);
		allocate(a, PID, 0x1000, 200);
		allocate(a, PID, 0x2000, 210);
		task(a, RECORD_EXIT, PID, PID, 220);
		allocate(a, OTHER_TID, 0x3000, 230);
		release(a, OTHER_TID, 0x1000, 240);
		expect(a, 300, 3, capture ? 0 : 2);
		/* It sleeps meanwhile. */
		expect(a, 400, 0, capture ? 0 : 2);
		release(a, OTHER_TID, 0x2000, 410);
		expect(a, 500, 0, capture ? 0 : 1);
		task(a, RECORD_EXIT, PID, OTHER_TID, 510);
		process.has_ended = true;
		expect(a, 600, 0, capture ? 1 : 0);
		attribution_end(a);
		expect(a, 700, 0, 0);
		attribution_free(a);
	}
}

/* The number of a process that ended goes to another one before anybody looks. */
static void test_a_number_is_used_again(void)
{
	for (int capture = 0; capture < 2; capture++) {
		struct attribution *a = make_attribution(capture);

		allocate(a, PID, 0x1000, 200);
		task(a, RECORD_EXIT, PID, PID, 210);
		start(a, 220);
		allocate(a, PID, 0x2000, 230);
		allocate(a, PID, 0x3000, 240);
		expect(a, 300, 3, capture ? 1 : 2);
		attribution_end(a);
		expect(a, 400, 0, 2);
		attribution_free(a);
	}
}

/* What finds no room is counted as missing from what is in use. */
static void test_too_many_blocks(void)
{
	struct attribution *a = make_attribution(false);
	const struct profile *p = attribution_profile(a);
	uint64_t n_dropped = 0;

	for (uint32_t i = 0; i < KEPT_BLOCKS_MAX + 5; i++) {
		allocate(a, PID, 0x1000 + (uint64_t)i * 16, 200 + i);
		if (i % 8192 && i < KEPT_BLOCKS_MAX)
			continue;
		attribution_close(a, 200 + i, false);
		CHECK_INT(p->types[PICKED].counters[PROFILE_SAMPLES_DROPPED], ==, 0);
		n_dropped += p->types[ENDED].counters[PROFILE_SAMPLES_DROPPED];
		attribution_next_window(a);
	}
	CHECK_INT(n_dropped, ==, 5);
	attribution_free(a);
}

/* One of several profilers, one after the other. */
static struct attribution *make_follower(struct kept_blocks *k)
{
	struct attribution *a = make_attribution(false);

	attribution_share_blocks(a, k);
	return a;
}

/* Of two profilers, one after the other, the second knows what the first had in use, and that it
 * has no stacks of it. */
static void test_a_profiler_follows_another_one(void)
{
	_cleanup_close_ int fd = kept_blocks_new();
	struct kept_blocks *k = NULL;
	struct attribution *a;

	CHECK_INT(kept_blocks_map(fd, &k), ==, 0);
	a = make_follower(k);
	for (uint32_t i = 1; i <= 4; i++)
		allocate(a, PID, 0x1000 * i, 200 + i);
	release(a, PID, 0x1000, 220);
	attribution_free(a);

	a = make_follower(k);
	process.table[0] = 0x2000;
	process.table[1] = 0x4000;
	process.table[2] = 0x5000;
	allocate(a, PID, 0x5000, 310);
	n_not_seen = 0;
	/* The third block has ended between the two. */
	expect(a, 400, 1, 3);
	CHECK_INT(process.n_asked, ==, 1);
	CHECK_INT(n_not_seen, ==, 1);
	release(a, PID, 0x2000, 410);
	expect(a, 500, 0, 2);
	process.has_ended = true;
	task(a, RECORD_EXIT, PID, PID, 510);
	expect(a, 600, 0, 0);
	attribution_free(a);

	a = make_follower(k);
	expect(a, 700, 0, 0);
	attribution_free(a);
	kept_blocks_unmap(k);
}

/* Its process has ended between the two, and no record says so. */
static void test_a_process_ends_between_profilers(void)
{
	_cleanup_close_ int fd = kept_blocks_new();
	struct kept_blocks *k = NULL;
	struct attribution *a;

	CHECK_INT(kept_blocks_map(fd, &k), ==, 0);
	a = make_follower(k);
	allocate(a, PID, 0x1000, 200);
	attribution_free(a);
	a = make_follower(k);
	process.is_gone = process.has_ended = true;
	expect(a, 300, 0, 0);
	attribution_free(a);
	kept_blocks_unmap(k);
}

static int start_broker(void)
{
	static int sock;
	pthread_t thread;
	int socks[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), ==, 0);
	ask.sock = socks[0];
	sock = socks[1];
	return pthread_create(&thread, NULL, answer, &sock);
}

int main(void)
{
	if (!sample_has_arguments())
		return 77;
	CHECK_INT(start_broker(), ==, 0);
	RUN(test_a_capture_tells_at_its_end);
	RUN(test_a_capture_loses_an_end);
	RUN(test_a_daemon_loses_an_end);
	RUN(test_a_look_is_put_off);
	RUN(test_a_process_ends);
	RUN(test_threads_outlive_the_main_one);
	RUN(test_a_number_is_used_again);
	RUN(test_too_many_blocks);
	RUN(test_a_profiler_follows_another_one);
	RUN(test_a_process_ends_between_profilers);
	return 0;
}
