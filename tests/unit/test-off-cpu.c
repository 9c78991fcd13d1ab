/* SPDX-License-Identifier: Apache-2.0 */
/* Whose time is told: in a pid namespace of our own, records of switches name a thread by another
 * number than all others. */
#include <linux/perf_event.h>

#include "src/process/filter.h"
#include "src/profiler/attribute.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "util/clock.h"

/* Numbers in our namespace, and in the host's. */
enum { PID = 50, TID = 50, OF_HOST = 9050 };
#define MS NSEC_PER_MSEC

static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers */
static struct filter filter;

static struct attribution *begin(bool other_numbers)
{
	static const enum sample_use uses[] = {SAMPLE_USE_EVENT, SAMPLE_USE_BLOCKS,
					       SAMPLE_USE_SWITCHES};
	static struct setup_profiler setup;
	struct attribution *a = NULL;

	setup = (struct setup_profiler){.n_events = ARRAY_SIZE(uses),
					.other_numbers = other_numbers,
					.window_memory_bytes = 1 << 20,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	for (uint32_t i = 0; i < ARRAY_SIZE(uses); i++) {
		struct sample_options *o = &setup.events[i].options;

		*o = (struct sample_options){.index = i, .use = uses[i], .period = 1};
		setup.events[i].features.clockid = setup.events[i].features.comm_exec = true;
	}
	CHECK_INT(attribution_new(&a, &role, &ask, &setup, &filter, NULL), ==, 0);
	return a;
}

static void executes(struct attribution *a, const char *name, uint64_t time_ns)
{
	struct record r = {.type = RECORD_COMM, .time_ns = time_ns, .pid = PID, .tid = TID};

	r.comm.comm = name;
	r.comm.exec = true;
	(void)attribution_record(a, &r);
}

static void is_forked(struct attribution *a, uint64_t time_ns)
{
	struct record r = {.type = RECORD_FORK, .time_ns = time_ns, .pid = PID, .tid = TID};

	r.task.parent_pid = r.task.parent_tid = 1;
	(void)attribution_record(a, &r);
}

static void born(struct attribution *a, uint64_t time_ns)
{
	is_forked(a, time_ns);
	executes(a, "shell", time_ns);
}

static void ends(struct attribution *a, uint32_t tid, uint64_t time_ns)
{
	const struct record r = {.type = RECORD_EXIT, .time_ns = time_ns, .pid = tid, .tid = tid};

	(void)attribution_record(a, &r);
}

/* tid: 0 outside of our namespace. */
static void switches(struct attribution *a, uint32_t tid, int32_t from, int32_t to,
		     uint64_t time_ns)
{
	struct record r = {
		.type = RECORD_SWITCH, .index = 2, .time_ns = time_ns, .pid = tid, .tid = tid};

	r.sw.prev_state = 1;
	r.sw.prev_id = (uint32_t)from;
	r.sw.next_id = (uint32_t)to;
	r.sw.has_program = tid != 0;
	(void)attribution_record(a, &r);
}

/* Its last switch, after it has told of its end: it has no number of its own, and no program any
 * more. */
static void dies(struct attribution *a, int32_t from, uint64_t time_ns)
{
	struct record r = {.type = RECORD_SWITCH,
			   .index = 2,
			   .time_ns = time_ns,
			   .pid = PID,
			   .tid = UINT32_MAX};

	r.sw.prev_state = 0x10;
	r.sw.prev_id = (uint32_t)from;
	(void)attribution_record(a, &r);
}

struct told {
	uint64_t running_us, blocked_us, before_us;
};

static struct told end(struct attribution *a, uint64_t time_ns)
{
	struct told t;

	attribution_close(a, time_ns, false);
	t.running_us = profile_counter(attribution_profile(a), PROFILE_RUNNING_US);
	t.blocked_us = profile_counter(attribution_profile(a), PROFILE_BLOCKED_US);
	t.before_us = profile_counter(attribution_profile(a), PROFILE_BEFORE_US);
	attribution_free(a);
	return t;
}

/* A thread of the host that has the number which ours has in our namespace. */
static void test_a_start_is_of_no_other_thread(void)
{
	struct attribution *a = begin(true);
	struct told t;

	born(a, 100 * MS);
	switches(a, 0, TID, 0, 900 * MS);
	switches(a, 0, 0, TID, 950 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.running_us, ==, 0);
	CHECK_INT(t.blocked_us, ==, 0);
}

static void test_an_end_is_of_no_other_thread(void)
{
	struct attribution *a = begin(true);
	struct told t;

	born(a, 100 * MS);
	switches(a, 0, 0, OF_HOST, 200 * MS);
	switches(a, TID, OF_HOST, 0, 300 * MS);
	ends(a, OF_HOST, 500 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.running_us, ==, 100000);
	CHECK_INT(t.blocked_us, ==, 700000);
}

/* A life of a thread whose number in the host's namespace is that one. */
static struct told life(bool other_numbers, int32_t of_host)
{
	struct attribution *a = begin(other_numbers);

	born(a, 100 * MS);
	switches(a, 0, 0, of_host, 200 * MS);
	switches(a, TID, of_host, 0, 300 * MS);
	switches(a, 0, 0, of_host, 350 * MS);
	executes(a, "wanted", 400 * MS);
	switches(a, TID, of_host, 0, 450 * MS);
	switches(a, 0, 0, of_host, 550 * MS);
	switches(a, TID, of_host, 0, 600 * MS);
	ends(a, TID, 800 * MS);
	return end(a, 1000 * MS);
}

/* Its programs and its end count under both numbers. */
static void test_a_life(void)
{
	struct told here, host;

	CHECK_INT(filter_add(&filter, "+nwanted"), ==, 0);
	here = life(true, OF_HOST);
	host = life(false, TID);
	CHECK_INT(here.blocked_us, ==, 100000);
	CHECK_INT(host.blocked_us, ==, 100000);
	CHECK_INT(here.running_us, ==, 100000);
	CHECK_INT(host.running_us, ==, 100000);
	filter_deinit(&filter);
	filter = (struct filter){0};
}

/* One that is blocked when the events begin is told of under its number here; its switches have
 * another. */
static void test_a_thread_is_blocked_once(void)
{
	struct attribution *a = begin(true);
	struct message m = {.type = MESSAGE_STANDS};
	struct told t;

	born(a, 50 * MS);
	m.stands.n = 1;
	m.stands.threads[0] = (struct message_stands){.time_ns = 100 * MS, .pid = PID, .tid = TID};
	attribution_stands(a, &m);
	switches(a, 0, 0, OF_HOST, 200 * MS);
	switches(a, TID, OF_HOST, 0, 900 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.running_us, ==, 700000);
	CHECK_INT(t.blocked_us, ==, 100000);
}

/* In the host's namespace both are one. */
static void test_numbers_of_the_host(void)
{
	struct attribution *a = begin(false);
	struct told t;

	born(a, 100 * MS);
	switches(a, TID, TID, 0, 300 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.running_us, ==, 200000);
	CHECK_INT(t.blocked_us, ==, 700000);
}

/* A thread that ends is not another one that has been there all the time. */
static void test_a_thread_ends_once(void)
{
	for (int other_numbers = 0; other_numbers < 2; other_numbers++) {
		struct attribution *a = begin(other_numbers);
		int32_t id = other_numbers ? OF_HOST : TID;
		struct told t;

		is_forked(a, 100 * MS);
		switches(a, 0, 0, id, 200 * MS);
		switches(a, TID, id, 0, 300 * MS);
		switches(a, 0, 0, id, 400 * MS);
		ends(a, TID, 500 * MS);
		dies(a, id, 510 * MS);
		/* Its number is free for another one. */
		is_forked(a, 600 * MS);
		switches(a, 0, 0, id, 650 * MS);
		switches(a, TID, id, 0, 700 * MS);
		t = end(a, 1000 * MS);
		CHECK_INT(t.running_us, ==, 250000);
		CHECK_INT(t.blocked_us, ==, 400000);
		/* Of a birth there is no number of the host. */
		CHECK_INT(t.before_us, ==, other_numbers ? 100000 + 550000 : 0);
	}
}

/* Its last switch, and the birth of the next one with its number, may be lost. */
static void test_a_birth_is_lost(void)
{
	struct record lost = {
		.type = RECORD_LOST, .time_ns = 600 * MS, .from_sideband = true, .lost = 1};
	struct attribution *a = begin(false);
	struct told t;

	is_forked(a, 100 * MS);
	switches(a, 0, 0, TID, 200 * MS);
	ends(a, TID, 300 * MS);
	(void)attribution_record(a, &lost);
	switches(a, 0, 0, TID, 650 * MS);
	switches(a, TID, TID, 0, 700 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.running_us, ==, 150000);
	CHECK_INT(t.blocked_us, ==, 300000);
}

/* One that never switched before has its time until then. */
static void test_a_thread_that_only_ends(void)
{
	struct attribution *a = begin(false);
	struct told t;

	switches(a, PID + 1, PID + 1, 0, 100 * MS);
	ends(a, TID, 500 * MS);
	dies(a, TID, 510 * MS);
	t = end(a, 1000 * MS);
	CHECK_INT(t.before_us + t.running_us, ==, 410000);
}

int main(void)
{
	RUN(test_a_start_is_of_no_other_thread);
	RUN(test_an_end_is_of_no_other_thread);
	RUN(test_a_life);
	RUN(test_a_thread_is_blocked_once);
	RUN(test_numbers_of_the_host);
	RUN(test_a_thread_ends_once);
	RUN(test_a_birth_is_lost);
	RUN(test_a_thread_that_only_ends);
	return 0;
}
