/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes stand for the rings: where one is not emptied, programs begin all the time. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/profiler/newcomers.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { MAX_LOOKS = 16 };

struct host {
	struct loop *loop;
	struct newcomers *newcomers;
	int ends[2];
	bool empties; /* each look */
	int n_looks, wanted;
	uint64_t looks_ns[MAX_LOOKS];
};

static bool on_look(void *ctx)
{
	struct host *h = ctx;
	char bytes[64];

	h->looks_ns[h->n_looks++] = clock_monotonic_ns();
	if (h->n_looks == h->wanted)
		loop_exit(h->loop, 1);
	return !h->empties || read(h->ends[0], bytes, sizeof(bytes)) > 0;
}

static void on_end(void *ctx)
{
	loop_exit(((struct host *)ctx)->loop, 2);
}

static void start(struct host *h)
{
	CHECK_INT(pipe2(h->ends, O_CLOEXEC | O_NONBLOCK), ==, 0);
	CHECK_INT(loop_new(&h->loop), ==, 0);
	CHECK_INT(newcomers_new(&h->newcomers, h->loop, on_look, h), ==, 0);
	newcomers_add(h->newcomers, h->ends[0]);
}

static void write_record(struct host *h)
{
	CHECK_INT(write(h->ends[1], "x", 1), ==, 1);
}

/* How it ended: 1, after so many looks; 2, after that time. */
static int run(struct host *h, uint64_t ns)
{
	int r;

	CHECK_INT(loop_add_timer(h->loop, ns, 0, on_end, h), >=, 0);
	r = loop_run(h->loop);
	newcomers_free(h->newcomers);
	loop_free(h->loop);
	(void)close(h->ends[0]);
	(void)close(h->ends[1]);
	return r;
}

/* Its file and its libraries come a while after its first record. */
static void test_one(void)
{
	struct host h = {.empties = true, .wanted = 1};
	uint64_t began = clock_monotonic_ns();

	start(&h);
	write_record(&h);
	CHECK_INT(run(&h, UINT64_MAX), ==, 1);
	CHECK_INT(h.looks_ns[0] - began, >=, 10 * NSEC_PER_MSEC);
}

/* What is written before the look, and not told again, is seen by the next one; then it is over. */
static void test_behind(void)
{
	struct host h = {.empties = true, .wanted = 4};

	start(&h);
	write_record(&h);
	CHECK_INT(run(&h, 500 * NSEC_PER_MSEC), ==, 2);
	CHECK_INT(h.n_looks, ==, 2);
	CHECK_INT(h.looks_ns[1] - h.looks_ns[0], >=, 50 * NSEC_PER_MSEC);
}

static void test_many(void)
{
	struct host h = {.wanted = 4};

	start(&h);
	write_record(&h);
	CHECK_INT(run(&h, UINT64_MAX), ==, 1);
	for (int i = 1; i < h.wanted; i++)
		CHECK_INT(h.looks_ns[i] - h.looks_ns[i - 1], >=, 50 * NSEC_PER_MSEC);
}

static pid_t start_writer(const struct host *h)
{
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	for (ssize_t n = 1; pid == 0 && n == 1;) {
		(void)usleep(5000);
		n = write(h->ends[1], "x", 1);
	}
	if (pid == 0)
		_exit(1);
	return pid;
}

static long n_sleeps(void)
{
	struct rusage u;

	CHECK_INT(getrusage(RUSAGE_SELF, &u), ==, 0);
	return u.ru_nvcsw;
}

/* Where programs begin all the time, a look is all that it takes: no ring wakes it in between. */
static void test_sleeps(void)
{
	struct host h = {.empties = true, .wanted = MAX_LOOKS};
	pid_t writer;
	long before;

	start(&h);
	writer = start_writer(&h);
	before = n_sleeps();
	CHECK_INT(run(&h, UINT64_MAX), ==, 1);
	CHECK_INT(n_sleeps() - before, <=, h.wanted + 5);
	CHECK_INT(kill(writer, SIGKILL), ==, 0);
	CHECK_INT(waitpid(writer, NULL, 0), ==, writer);
}

static void test_none(void)
{
	struct host h = {.wanted = 1};

	start(&h);
	CHECK_INT(run(&h, 100 * NSEC_PER_MSEC), ==, 2);
	CHECK_INT(h.n_looks, ==, 0);
}

/* A ring whose task is gone reports an error for ever, and is looked at once more. */
static void test_gone(void)
{
	struct host h = {.empties = true, .wanted = 2};

	start(&h);
	(void)close(h.ends[1]);
	h.ends[1] = -1;
	CHECK_INT(run(&h, 200 * NSEC_PER_MSEC), ==, 2);
	CHECK_INT(h.n_looks, ==, 1);
}

/* A CPU goes offline between its records and the look. */
static void test_removed(void)
{
	struct host h = {.wanted = 2};

	start(&h);
	newcomers_remove(h.newcomers, h.ends[0]);
	write_record(&h);
	CHECK_INT(run(&h, 100 * NSEC_PER_MSEC), ==, 2);
	CHECK_INT(h.n_looks, ==, 0);
}

int main(void)
{
	RUN(test_one);
	RUN(test_behind);
	RUN(test_many);
	RUN(test_sleeps);
	RUN(test_none);
	RUN(test_gone);
	RUN(test_removed);
	return 0;
}
