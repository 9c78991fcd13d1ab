/* SPDX-License-Identifier: Apache-2.0 */
/* The attribution by its header: whose a sample is, what the filter leaves out, what is counted for
 * which event, and where a window ends. Samples are the kernel's, so no stack is walked but by
 * frame pointers. */
#include <linux/perf_event.h>

#include "src/process/filter.h"
#include "src/profile/window.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/wall-time.h"
#include "src/profiler/walk.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

enum { N_EVENTS = 2, SAMPLE_CPU = 3 };

static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers */
static struct filter filter;

static struct attribution *make_small_attribution(uint64_t window_bytes)
{
	static struct setup_profiler setup;
	struct attribution *a = NULL;

	setup = (struct setup_profiler){.n_events = N_EVENTS,
					.window_memory_bytes = window_bytes,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		setup.events[i].options = (struct sample_options){.index = i, .rate_hz = 100};
		setup.events[i].features.comm_exec = true;
	}
	CHECK_INT(attribution_new(&a, &role, &ask, &setup, &filter, NULL), ==, 0);
	return a;
}

static struct attribution *make_attribution(void)
{
	return make_small_attribution(1 << 20);
}

static void start(struct attribution *a, uint32_t pid, const char *name, uint64_t time_ns)
{
	struct record r = {.type = RECORD_FORK, .time_ns = time_ns, .pid = pid, .tid = pid};

	r.task.parent_pid = r.task.parent_tid = 1;
	(void)attribution_record(a, &r);
	r = (struct record){.type = RECORD_COMM, .time_ns = time_ns, .pid = pid, .tid = pid};
	r.comm.comm = name;
	r.comm.exec = true;
	(void)attribution_record(a, &r);
}

static bool sample(struct attribution *a, uint32_t pid, uint32_t event, uint64_t time_ns)
{
	static const uint64_t kernel[] = {0xffffffff81000010, 0xffffffff81000020};
	struct record r = {.type = RECORD_SAMPLE,
			   .index = event,
			   .time_ns = time_ns,
			   .pid = pid,
			   .tid = pid,
			   .cpu = SAMPLE_CPU};

	r.sample.period = 1;
	r.sample.in_kernel = true;
	r.sample.kernel = kernel;
	r.sample.n_kernel = 2;
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_NONE;
	return attribution_record(a, &r);
}

/* The process of the i-th sample of an event. */
static const struct profile_process *owner(const struct profile *p, uint32_t event, uint32_t i)
{
	uint32_t thread = p->types[event].samples.items[i].thread;

	return &p->processes.items[p->threads.items[thread].process];
}

static void test_a_sample_has_its_owner(void)
{
	struct attribution *a = make_attribution();
	const struct profile *p = attribution_profile(a);
	struct record end = {.type = RECORD_EXIT, .time_ns = 300, .pid = 50, .tid = 50};

	start(a, 50, "first", 100);
	start(a, 60, "other", 110);
	CHECK(sample(a, 50, 0, 200));
	CHECK(sample(a, 60, 1, 210));
	/* The number goes to another process. */
	(void)attribution_record(a, &end);
	start(a, 50, "second", 400);
	CHECK(sample(a, 50, 0, 500));

	CHECK_INT(p->types[0].samples.n, ==, 2);
	CHECK_INT(p->types[1].samples.n, ==, 1);
	CHECK_STR(profile_text(p, owner(p, 0, 0)->comm), "first");
	CHECK_STR(profile_text(p, owner(p, 0, 1)->comm), "second");
	CHECK_STR(profile_text(p, owner(p, 1, 0)->comm), "other");
	CHECK_INT(owner(p, 1, 0)->pid, ==, 60);
	/* Its exec has begun, and its executable is not mapped yet. */
	CHECK_STR(profile_text(p, owner(p, 1, 0)->executable_path), "");
	CHECK(owner(p, 1, 0)->is_program);
	CHECK_INT(p->types[0].samples.items[0].cpu, ==, SAMPLE_CPU);
	/* Both have one stack, of the kernel. */
	CHECK_INT(p->types[0].samples.items[0].stack, ==, p->types[1].samples.items[0].stack);
	CHECK_INT(p->stacks.items[p->types[0].samples.items[0].stack].n_kernel, ==, 2);
	attribution_free(a);
}

static void test_the_filter_leaves_out(void)
{
	struct attribution *a;

	CHECK_INT(filter_add(&filter, "-nunwanted"), ==, 0);
	a = make_attribution();
	start(a, 50, "unwanted", 100);
	start(a, 60, "wanted", 100);
	CHECK(!sample(a, 50, 0, 200));
	CHECK(sample(a, 60, 0, 210));
	CHECK_INT(profile_n_samples(attribution_profile(a)), ==, 1);
	CHECK_STR(profile_text(attribution_profile(a), owner(attribution_profile(a), 0, 0)->comm),
		  "wanted");
	attribution_free(a);
	filter_deinit(&filter);
	filter = (struct filter){0};
}

static void test_each_event_has_its_counters(void)
{
	struct attribution *a = make_attribution();

	start(a, 50, "one", 100);
	CHECK(sample(a, 50, 1, 200));
	CHECK(sample(a, 50, 1, 300));
	attribution_add_lost(a, (struct sample_losses){.samples = {0, 7}, .sideband = 2});
	CHECK_INT(attribution_counters(a, 0)[PROFILE_SAMPLES], ==, 0);
	CHECK_INT(attribution_counters(a, 0)[PROFILE_SAMPLES_LOST], ==, 0);
	CHECK_INT(attribution_counters(a, 1)[PROFILE_SAMPLES], ==, 2);
	CHECK_INT(attribution_counters(a, 1)[PROFILE_SAMPLES_LOST], ==, 7);
	CHECK_INT(profile_counter(attribution_profile(a), PROFILE_SIDEBAND_LOST), ==, 2);
	attribution_free(a);
}

static void test_a_window_ends(void)
{
	struct attribution *a = make_attribution();
	const struct profile *p = attribution_profile(a);
	uint32_t n = 1;

	start(a, 50, "one", 100);
	CHECK(sample(a, 50, 0, 200));
	CHECK(!attribution_window_items(a, &n)); /* no file is in it */
	CHECK_INT(n, ==, 0);
	attribution_next_window(a);
	CHECK_INT(profile_n_samples(p), ==, 0);
	CHECK_INT(attribution_counters(a, 0)[PROFILE_SAMPLES], ==, 0);
	/* The process is known still. */
	CHECK(sample(a, 50, 0, 300));
	CHECK_STR(profile_text(p, owner(p, 0, 0)->comm), "one");
	attribution_free(a);
}

enum { CODE = 0x7f0000001000, CODE_BYTES = 0x1000 };

/* Code that the process compiles itself. */
static void compile(struct attribution *a, uint32_t pid, uint64_t time_ns)
{
	struct record r = {.type = RECORD_MMAP, .time_ns = time_ns, .pid = pid, .tid = pid};

	r.mmap.start = CODE;
	r.mmap.length = CODE_BYTES;
	r.mmap.path = "//anon";
	(void)attribution_record(a, &r);
}

/* A sample in that code, or a block there, of which the place is kept. */
static uint32_t run_code(struct attribution *a, uint32_t pid, uint64_t time_ns, bool blocks)
{
	static const uint64_t chain[] = {CODE + 0x10};
	struct record r = {.type = RECORD_SAMPLE, .time_ns = time_ns, .pid = pid, .tid = pid};

	r.sample.period = 1;
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r.sample.user_chain = chain;
	r.sample.n_user_chain = 1;
	if (!blocks) {
		CHECK(attribution_record(a, &r));
		return 0;
	}
	a->process = host_process_peek(a->host, pid);
	a->time_ns = time_ns;
	a->counters = a->profile.types[0].counters;
	return attribution_walk_to_keep(a, &r);
}

static void check_readable(const struct attribution *a)
{
	_cleanup_close_ int fd = -EBADF;
	struct profile copy, *p = (struct profile *)&a->profile;

	p->start_unix_ns = 1;
	p->end_unix_ns = 10000;
	fd = window_write(p);
	profile_init(&copy, 1 << 20);
	CHECK_INT(window_read(&copy, fd, 0, NULL, 0), ==, 0);
	profile_deinit(&copy);
}

/* The first that a window has of a process may be a block: its code is no row of a window
 * before. */
static void test_a_window_begins_with_a_block(void)
{
	enum { N = 5, LAST = 50 + N - 1 };
	struct attribution *a = make_attribution();
	const struct profile *p = attribution_profile(a);
	const struct profile_module *m;

	a->frame_pointers = true;
	for (uint32_t pid = 50; pid <= LAST; pid++) {
		start(a, pid, "compiler", 100);
		compile(a, pid, 110);
		(void)run_code(a, pid, 200, false);
	}
	check_readable(a);
	attribution_next_window(a);
	CHECK_INT(run_code(a, LAST, 300, true), ==, 1);
	CHECK_INT(p->frames.items[a->frames[0]].module, <, p->modules.n);
	m = &p->modules.items[p->frames.items[a->frames[0]].module];
	CHECK_INT(m->kind, ==, PROFILE_MODULE_JIT);
	CHECK_INT(m->process, <, p->processes.n);
	CHECK_INT(p->processes.items[m->process].pid, ==, LAST);
	check_readable(a);
	attribution_free(a);
}

/* Wherever the room ends: what does not fit is counted, and the rest can be read. */
static void test_full_windows_can_be_read(void)
{
	enum { N_SAMPLES = 4, ROOM = 8192, STEP = 8 };
	uint64_t most = 0;

	for (uint32_t bytes = 0; bytes < ROOM; bytes += STEP) {
		struct attribution *a = make_small_attribution(bytes);
		const uint64_t *c = attribution_counters(a, 0);

		a->frame_pointers = true;
		start(a, 50, "compiler", 100);
		compile(a, 50, 110);
		for (uint64_t i = 0; i < N_SAMPLES; i++) {
			(void)run_code(a, 50, 200 + i, false);
			CHECK(sample(a, 50, 0, 300 + i));
		}
		check_readable(a);
		CHECK_INT(c[PROFILE_SAMPLES], ==, 2 * N_SAMPLES);
		CHECK_INT(a->profile.types[0].samples.n + c[PROFILE_SAMPLES_DROPPED], ==,
			  2 * N_SAMPLES);
		most = a->profile.types[0].samples.n > most ? a->profile.types[0].samples.n : most;
		attribution_free(a);
	}
	CHECK_INT(most, ==, 2 * N_SAMPLES);
}

/* Threads that find no room are counted as missing from the wall time. */
static void test_wall_time_is_bounded(void)
{
	enum { ROOM = 262144 };
	struct attribution *a = make_attribution();
	struct thread_time t = {.pid = 50, .running_ns = 10};
	const struct profile *p = attribution_profile(a);
	struct wall_time *w = NULL;

	CHECK_INT(wall_time_new(&w, a), ==, 0);
	wall_time_put_type(w);
	for (t.tid = 1; t.tid <= ROOM + 3; t.tid++)
		wall_time_add(w, &t);
	t.running_ns = 0;
	wall_time_add(w, &t); /* no time, no loss */
	CHECK_INT(p->types[N_EVENTS].counters[PROFILE_SAMPLES_DROPPED], ==, 3);
	wall_time_free(w);
	attribution_free(a);
}

int main(void)
{
	RUN(test_a_sample_has_its_owner);
	RUN(test_the_filter_leaves_out);
	RUN(test_each_event_has_its_counters);
	RUN(test_a_window_ends);
	RUN(test_a_window_begins_with_a_block);
	RUN(test_full_windows_can_be_read);
	RUN(test_wall_time_is_bounded);
	return 0;
}
