/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks are of threads that wait for work, and what becomes of these. */
#include "src/symbolizer/idle.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define WINDOW (10 * NSEC_PER_SEC)

struct place {
	const char *function;
	enum profile_marker reason;
	double share; /* of the window, spent in n pieces of n_blocks together */
	uint32_t blocks;
	bool idle;
};

static const struct place places[] = {
	{"epoll_wait", PROFILE_MARKER_WAIT_POLL, 0.99, 9, true},
	{"pthread_cond_wait", PROFILE_MARKER_WAIT_CONDITION, 1, 0, true},
	{"accept4", PROFILE_MARKER_WAIT_NETWORK, 0.95, 2, true},
	{"read", PROFILE_MARKER_WAIT_PIPE, 0.95, 2, true},
	{"clock_nanosleep", PROFILE_MARKER_WAIT_SLEEP, 0.95, 2, true},
	/* Woken once a second, or away for a tenth of the time. */
	{"epoll_wait", PROFILE_MARKER_WAIT_POLL, 0.99, 10, false},
	{"epoll_wait", PROFILE_MARKER_WAIT_POLL, 0.89, 2, false},
	/* Somebody waits for an answer, a lock, a device, another thread's end. */
	{"recv", PROFILE_MARKER_WAIT_NETWORK, 1, 0, false},
	{"write", PROFILE_MARKER_WAIT_PIPE, 1, 0, false},
	{"pthread_join", PROFILE_MARKER_WAIT_CONDITION, 1, 0, false},
	{"pthread_mutex_lock", PROFILE_MARKER_WAIT_LOCK, 1, 0, false},
	{"pread", PROFILE_MARKER_WAIT_DISK, 1, 0, false},
	{"flock", PROFILE_MARKER_WAIT_FILE_LOCK, 1, 0, false},
	{"unknown", PROFILE_MARKER_WAIT, 1, 0, false},
};

#define N ((uint32_t)(sizeof(places) / sizeof(places[0])))

static uint32_t add_stack(struct profile *p, const struct place *at, uint64_t address)
{
	const struct profile_module file = {.uid = 100, .process = PROFILE_NONE},
				    marker = {.uid = PROFILE_UID_MARKER,
					      .kind = PROFILE_MODULE_MARKER,
					      .process = PROFILE_NONE};
	const struct profile_function fn = {.name = strtab_put(&p->strings, at->function)};
	const struct profile_line l = {.function = profile_add_function(p, &fn)};
	uint32_t frames[2];

	frames[0] = profile_add_frame(p, profile_add_module(p, &file), address);
	frames[1] = profile_add_frame(p, profile_add_module(p, &marker), at->reason);
	if (profile_wants_name(p, frames[0]))
		CHECK(profile_name_frame(p, frames[0], &l, 1));
	return profile_add_stack(p, frames, 2, 0);
}

/* A thread in each place, in two pieces, each in another span, of off-CPU time and of wall time. */
static void make(struct profile *p, uint64_t window_ns)
{
	const struct profile_process process = {.pid = 1};
	struct profile_type t = {.weighted = true, .period_events = 1};
	uint32_t row;

	profile_init(p, 1 << 20);
	t.unit = strtab_put(&p->strings, "nanoseconds");
	t.event = strtab_put(&p->strings, PROFILE_OFF_CPU);
	profile_set_type(p, 0, &t);
	t.event = strtab_put(&p->strings, PROFILE_WALL);
	CHECK_INT(profile_add_type(p, &t), ==, 1);
	row = profile_add_process(p, &process);
	p->start_unix_ns = NSEC_PER_SEC;
	p->end_unix_ns = NSEC_PER_SEC + window_ns;
	p->types[0].counters[PROFILE_BLOCKED_US] = 1000;
	for (uint32_t i = 0; i < 4 * N; i++) {
		const struct place *at = &places[i / 4];
		const struct profile_thread thread = {
			.process = row,
			.tid = 100 + i / 4,
			.labels = strtab_put(&p->strings, i % 2 ? "one" : "other")};
		struct profile_sample s = {.value = (int64_t)((double)window_ns * at->share / 2),
					   .n = i % 2 ? at->blocks : 0,
					   .thread = profile_add_labelled_thread(p, &thread),
					   .stack = add_stack(p, at, 0x1000 + i / 4),
					   .time_unix_ns = NSEC_PER_SEC};

		CHECK(profile_add_sample_of(p, i / 2 % 2, &s));
	}
}

/* The marker n frames from the outermost one; -1: none. */
static int64_t marker_of(const struct profile *p, uint32_t stack, uint32_t from_root)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	if (n <= from_root || !profile_is_marked(p, frames[n - 1 - from_root]))
		return -1;
	return (int64_t)p->frames.items[frames[n - 1 - from_root]].address;
}

static const struct place *place_of(const struct profile *p, const struct profile_sample *s)
{
	return &places[p->threads.items[s->thread].tid - 100];
}

static void test_left_out(void)
{
	uint64_t idle_us = 0, kept = 0;
	struct profile p;

	make(&p, WINDOW);
	idle_fold(&p, false);
	for (uint32_t i = 0; i < N; i++) {
		idle_us += places[i].idle ? (uint64_t)(places[i].share * 10e6) : 0;
		kept += !places[i].idle;
	}
	CHECK_INT(p.types[0].samples.n, ==, 2 * kept);
	for (uint32_t i = 0; i < p.types[0].samples.n; i++) {
		const struct place *at = place_of(&p, &p.types[0].samples.items[i]);

		fprintf(stderr, "%s stays\n", at->function);
		CHECK(!at->idle);
	}
	CHECK_INT(p.types[0].counters[PROFILE_IDLE_US], ==, idle_us);
	/* Wall time keeps every sample, and so each thread its time. */
	CHECK_INT(p.types[1].samples.n, ==, 2 * N);
	CHECK_INT(p.types[1].counters[PROFILE_IDLE_US], ==, 0);
	for (uint32_t i = 0; i < 2 * N; i++) {
		const struct profile_sample *s = &p.types[1].samples.items[i];
		const struct place *at = place_of(&p, s);

		CHECK_INT(marker_of(&p, s->stack, 0), ==,
			  at->idle ? PROFILE_MARKER_IDLE : at->reason);
		CHECK_INT(p.stacks.items[s->stack].n, ==, at->idle ? 1 : 2);
	}
	profile_deinit(&p);
}

static void test_shown(void)
{
	struct profile p;

	make(&p, WINDOW);
	idle_fold(&p, true);
	CHECK_INT(p.types[0].counters[PROFILE_IDLE_US], ==, 0);
	for (uint32_t type = 0; type < 2; type++) {
		CHECK_INT(p.types[type].samples.n, ==, 2 * N);
		for (uint32_t i = 0; i < 2 * N; i++) {
			const struct profile_sample *s = &p.types[type].samples.items[i];
			const struct place *at = place_of(&p, s);

			CHECK_INT(marker_of(&p, s->stack, at->idle), ==, at->reason);
			CHECK_INT(marker_of(&p, s->stack, 0), ==,
				  at->idle ? PROFILE_MARKER_IDLE : at->reason);
		}
	}
	profile_deinit(&p);
}

/* Switches that were followed half of the time: so is the rest of it. */
/* A thread that waits for work in a deep recursion. */
static void test_deep(void)
{
	static const struct place at = {"epoll_wait", PROFILE_MARKER_WAIT_POLL, 1, 1, true};
	enum { N_FRAMES = 20000 };
	static uint32_t frames[N_FRAMES];
	struct profile_sample s = {.value = (int64_t)WINDOW, .n = 1, .time_unix_ns = NSEC_PER_SEC};
	const uint32_t *rows;
	struct profile p;
	uint32_t stack, n;

	for (int show = 0; show < 2; show++) {
		make(&p, WINDOW);
		p.types[0].samples.n = p.types[1].samples.n = 0;
		s.thread = profile_add_thread(&p, 0, 99, STRID_EMPTY);
		rows = profile_stack_frames(&p, add_stack(&p, &at, 0x9000), &n);
		for (uint32_t i = 0; i < N_FRAMES; i++)
			frames[i] = rows[0];
		frames[N_FRAMES - 1] = rows[n - 1];
		s.stack = stack = profile_add_stack(&p, frames, N_FRAMES, 0);
		CHECK(profile_add_sample_of(&p, 0, &s) && profile_add_sample_of(&p, 1, &s));
		idle_fold(&p, show);
		CHECK_INT(p.types[0].samples.n, ==, show ? 1 : 0);
		CHECK_INT(p.types[1].samples.n, ==, 1);
		stack = p.types[1].samples.items[0].stack;
		CHECK_INT(marker_of(&p, stack, 0), ==, PROFILE_MARKER_IDLE);
		(void)profile_stack_frames(&p, stack, &n);
		CHECK_INT(n, ==, show ? N_FRAMES + 1 : 1);
		profile_deinit(&p);
	}
}

static void test_in_turns(void)
{
	struct profile p;

	make(&p, WINDOW);
	p.end_unix_ns += WINDOW;
	idle_fold(&p, false);
	CHECK_INT(p.types[0].samples.n, ==, 2 * N);
	p.types[0].counters[PROFILE_UNKNOWN_US] = p.types[0].counters[PROFILE_BLOCKED_US];
	idle_fold(&p, false);
	CHECK_INT(p.types[0].samples.n, <, 2 * N);
	CHECK_INT(p.types[0].counters[PROFILE_IDLE_US], >, 0);
	profile_deinit(&p);
}

static void test_short_window(void)
{
	struct profile p;

	make(&p, NSEC_PER_SEC - 1);
	idle_fold(&p, false);
	CHECK_INT(p.types[0].samples.n, ==, 2 * N);
	profile_deinit(&p);
}

int main(void)
{
	RUN(test_left_out);
	RUN(test_shown);
	RUN(test_deep);
	RUN(test_in_turns);
	RUN(test_short_window);
	return 0;
}
