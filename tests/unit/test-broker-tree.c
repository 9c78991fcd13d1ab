/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What broker.h promises, with the broker's own table of children, who are this program. A child
 * does what the plan says and notes what it is told in memory that all share, so that the order of
 * what several of them saw is known. Most cases read a recording, for which nothing is opened; the
 * last ones sample this process, where that is permitted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/opener/helper.h"
#include "src/process/statistics.h"
#include "src/profile/profile.h"
#include "tests/unit/child-loop.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define SHARED_FD  100
#define MAX_NOTES  512
#define NEVER_DONE 1 /* the id of a flush whose window does not come */

enum seen { STARTED, SET_UP_AGAIN, JOINED, FLUSHED, PAUSED, PLACED, FETCHED, STOPPED, LEFT };

struct shared {
	struct plan {
		bool input_ends; /* the profiler is through with its file at once: input_result */
		int input_result;
		int exit_status[PEER_N];
		bool stays[PEER_N]; /* whatever it is asked */
		bool lies;	    /* the profiler says what is others' to say */
	} plan;
	uint32_t n;
	struct note {
		enum peer who;
		enum seen what;
		uint32_t whole; /* written last */
		uint64_t value;
	} notes[MAX_NOTES];
};

static struct shared *shared;

/* ---- The child ---- */

static void note(enum peer who, enum seen what, uint64_t value)
{
	struct note *n = &shared->notes[__atomic_fetch_add(&shared->n, 1, __ATOMIC_SEQ_CST)];

	n->who = who;
	n->what = what;
	n->value = value;
	__atomic_store_n(&n->whole, 1, __ATOMIC_RELEASE);
}

static void say_result(int code)
{
	struct message m = {.type = MESSAGE_RESULT};

	m.result.code = code;
	m.result.written = 5;
	m.result.output_errors[1] = -ENOSPC;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

static void begin(enum peer me, struct status_page *page)
{
	struct message m = {.type = MESSAGE_FETCHED};

	m.fetch.n = 20;
	page->ready = 1;
	if (me == PEER_PROFILER) {
		page->counts.samples = 100;
		page->counts.filtered = 30;
	}
	if (me == PEER_SYMBOLIZER) {
		page->counts.counters[PROFILE_SAMPLES_LOST] = 5;
		page->counts.counters[PROFILE_SAMPLES_DROPPED] = 1;
	}
	note(me, STARTED, (uint64_t)getpid());
	if (me == PEER_PROFILER && shared->plan.lies)
		(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
	if (me == PEER_PROFILER && shared->plan.input_ends)
		say_result(shared->plan.input_result);
}

static enum peer find_role(const char *me)
{
	int kind = 0;

	while (kind < PEER_N && strcmp(me, peer_name((enum peer)kind)) != 0)
		kind++;
	CHECK_INT(kind, <, PEER_N);
	return (enum peer)kind;
}

static int child_main(const char *name)
{
	struct status_page *page = NULL;
	enum peer me = find_role(name);
	bool begun = false;
	struct message m;
	int fds[2];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	CHECK(shared != MAP_FAILED);
	while (message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0) > 0) {
		if (m.type == MESSAGE_SETUP && !page)
			CHECK_INT(status_page_map(fds[0], &page), ==, 0);
		else if (m.type == MESSAGE_SETUP)
			note(me, SET_UP_AGAIN, 0);
		else if (m.type == MESSAGE_START && !begun)
			begin(me, page), begun = true;
		else if (m.type == MESSAGE_PEER)
			note(me, JOINED, m.peer.peer);
		else if (m.type == MESSAGE_PAUSE)
			note(me, PAUSED, m.pause.paused);
		else if (m.type == MESSAGE_PLACE)
			note(me, PLACED, m.place.events[0].samples);
		else if (m.type == MESSAGE_FETCHED)
			note(me, FETCHED, 0);
		if (m.type == MESSAGE_FLUSH) {
			page->flushed = m.flush.id == NEVER_DONE ? 0 : m.flush.id;
			note(me, FLUSHED, m.flush.id);
		}
		if (m.type == MESSAGE_STOP)
			note(me, STOPPED, 0);
		if (m.type == MESSAGE_STOP && !shared->plan.stays[me]) {
			if (me == PEER_SYMBOLIZER)
				say_result(0);
			note(me, LEFT, 0);
			return shared->plan.exit_status[me];
		}
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
	}
	return 1;
}

/* ---- The parent ---- */

static struct {
	struct loop *loop;
	struct broker *broker;
	struct config *config;
	const struct step *steps; /* ends with NULL */
	int result;
	unsigned int n_done;
} world;

static void look(void)
{
	step_on(&world.steps, world.loop);
}

static void on_done(void *ctx, int result)
{
	world.result = result;
	world.n_done++;
}

static void on_signal(void *ctx, int fd, uint32_t events)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		broker_reap(world.broker);
	look();
}

static void on_watch_timer(void *ctx)
{
	look();
}

static struct broker_options recording(void)
{
	return (struct broker_options){
		.config = world.config,
		.capture = true,
		.interval_ns = NSEC_PER_SEC,
		.summary_fd = -EBADF,
		.input_path = "a recording",
		.input_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		.done = on_done,
	};
}

/* Runs through the steps. What broker_new() says; below 0 no step was made. */
static int run(const struct step *steps, const struct plan *plan, struct broker_options *o)
{
	int fd, r;

	shared->plan = *plan;
	shared->n = 0;
	memset(shared->notes, 0, sizeof(shared->notes));
	world.steps = steps;
	world.n_done = 0;
	fd = child_loop_new(&world.loop, on_signal);
	CHECK_INT(loop_add_timer(world.loop, 10 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC, on_watch_timer,
				 NULL),
		  >=, 0);
	r = broker_new(&world.broker, world.loop, o);
	if (r == 0)
		CHECK_INT(loop_run(world.loop), ==, 0);
	world.broker = broker_free(world.broker);
	world.loop = loop_free(world.loop);
	(void)close(fd);
	if (o->input_path)
		(void)close_fd(o->input_fd);
	return r;
}

static void run_recording(const struct step *steps, const struct plan *plan)
{
	struct broker_options o = recording();

	CHECK_INT(run(steps, plan, &o), ==, 0);
}

/* How often a child has seen that; *ret_last: its last place in the order, and its value. */
static unsigned int count(enum peer who, enum seen what, struct note *ret_last, uint32_t *ret_at)
{
	uint32_t n = __atomic_load_n(&shared->n, __ATOMIC_SEQ_CST);
	unsigned int found = 0;

	CHECK_INT(n, <=, MAX_NOTES);
	for (uint32_t i = 0; i < n; i++) {
		const struct note *k = &shared->notes[i];

		if (!__atomic_load_n(&k->whole, __ATOMIC_ACQUIRE) || k->who != who ||
		    k->what != what)
			continue;
		found++;
		if (ret_last)
			*ret_last = *k;
		if (ret_at)
			*ret_at = i;
	}
	return found;
}

static unsigned int n_seen(enum peer who, enum seen what)
{
	return count(who, what, NULL, NULL);
}

/* The place in the order of the only time. */
static uint32_t place_of(enum peer who, enum seen what)
{
	uint32_t at = 0;

	CHECK_INT(count(who, what, NULL, &at), ==, 1);
	return at;
}

static uint64_t last_value(enum peer who, enum seen what)
{
	struct note last = {.value = 0};

	CHECK_INT(count(who, what, &last, NULL), >, 0);
	return last.value;
}

static bool all_have_begun(void)
{
	return n_seen(PEER_PROFILER, STARTED) > 0 && n_seen(PEER_SYMBOLIZER, STARTED) > 0;
}

static bool is_done(void)
{
	return world.n_done > 0;
}

static void enable(void)
{
	CHECK_INT(broker_enable(world.broker), ==, 0);
}

static void stop(void)
{
	broker_stop(world.broker);
	broker_stop(world.broker);
}

/* ---- How it ends ---- */

static void check_end_of_recording(void)
{
	CHECK_INT(world.n_done, ==, 1);
	CHECK_INT(world.result, ==, 0);
	CHECK_INT(broker_written_outputs(world.broker), ==, 5);
	CHECK_INT(broker_output_error(world.broker, 0), ==, 0);
	CHECK_INT(broker_output_error(world.broker, 1), ==, -ENOSPC);
	CHECK_INT(place_of(PEER_PROFILER, STOPPED), <, place_of(PEER_PROFILER, LEFT));
	CHECK_INT(place_of(PEER_PROFILER, LEFT), <, place_of(PEER_SYMBOLIZER, STOPPED));
	CHECK_INT(n_seen(PEER_EXPORTER, STARTED) + n_seen(PEER_SCREEN, STARTED), ==, 0);
	CHECK_INT(n_seen(PEER_SYMBOLIZER, FETCHED), ==, 0);
	broker_stop(world.broker);
	broker_kill(world.broker);
	CHECK_INT(world.n_done, ==, 1);
}

/* The end of the file ends the capture, first to last; and no child speaks for another. */
static void test_a_recording_ends(void)
{
	static const struct step steps[] = {{is_done, check_end_of_recording}, {NULL, NULL}};

	run_recording(steps, &(struct plan){.input_ends = true, .lies = true});
}

static void check_damaged(void)
{
	CHECK_INT(world.result, ==, -EBADMSG);
	CHECK_INT(broker_written_outputs(world.broker), ==, 0);
}

static void test_a_damaged_recording(void)
{
	static const struct step steps[] = {{is_done, check_damaged}, {NULL, NULL}};

	run_recording(steps, &(struct plan){.input_ends = true, .input_result = -EBADMSG});
}

static void check_bad_end(void)
{
	CHECK_INT(world.n_done, ==, 1);
	CHECK_INT(world.result, ==, -ECHILD);
}

static void test_a_child_fails_at_the_end(void)
{
	static const struct step steps[] = {
		{all_have_begun, stop}, {is_done, check_bad_end}, {NULL, NULL}};

	run_recording(steps, &(struct plan){.exit_status = {[PEER_PROFILER] = 1}});
}

static void check_deadline(void)
{
	CHECK_INT(world.n_done, ==, 1);
	CHECK_INT(world.result, ==, -ETIMEDOUT);
	CHECK_INT(n_seen(PEER_SYMBOLIZER, LEFT), ==, 0);
}

static void test_a_child_that_stays(void)
{
	static const struct step steps[] = {
		{all_have_begun, stop}, {is_done, check_deadline}, {NULL, NULL}};
	struct broker_options o = recording();

	o.stop_deadline_ns = NSEC_PER_SEC / 2;
	CHECK_INT(run(steps, &(struct plan){.stays = {[PEER_SYMBOLIZER] = true}}, &o), ==, 0);
}

static void kill_all(void)
{
	broker_kill(world.broker);
}

static void check_killed(void)
{
	CHECK_INT(world.n_done, ==, 1);
	CHECK_INT(world.result, ==, -EINTR);
	CHECK_INT(n_seen(PEER_PROFILER, STOPPED) + n_seen(PEER_SYMBOLIZER, STOPPED), ==, 0);
	CHECK_INT(n_seen(PEER_PROFILER, STARTED), ==, 1);
}

static void test_a_kill_asks_nobody(void)
{
	static const struct step steps[] = {
		{all_have_begun, kill_all}, {is_done, check_killed}, {NULL, NULL}};

	run_recording(steps, &(struct plan){.input_ends = false});
}

/* ---- What children count ---- */

static void check_progress(uint64_t wanted)
{
	uint64_t samples, lost;

	broker_progress(world.broker, &samples, &lost);
	CHECK_INT(samples, ==, wanted);
	CHECK_INT(lost, ==, 6);
}

static uint64_t load_cpu_ns; /* before the symbolizer was killed */

static void check_and_kill_symbolizer(void)
{
	struct statistics s;
	uint64_t rss_bytes;

	check_progress(70);
	statistics_collect(world.broker, &s);
	CHECK_INT(s.n_processes, ==, 4);
	CHECK_STR(s.processes[0].name, "profiler");
	CHECK(s.processes[0].ready && s.processes[0].wanted && s.processes[0].starts == 1);
	CHECK_INT(s.processes[1].pid, ==, last_value(PEER_SYMBOLIZER, STARTED));
	CHECK_STR(s.processes[2].name, OPENER_NAME);
	CHECK_STR(s.processes[3].name, "broker");
	broker_load(world.broker, &load_cpu_ns, &rss_bytes);
	CHECK_INT(load_cpu_ns, >, 0);
	CHECK_INT(rss_bytes, >, 0);
	CHECK_INT(kill((pid_t)last_value(PEER_SYMBOLIZER, STARTED), SIGKILL), ==, 0);
}

/* What the dead process has used stays in the sum, or top would show no cost for a while. */
static void check_load_is_kept(void)
{
	uint64_t cpu_ns, rss_bytes;

	broker_load(world.broker, &cpu_ns, &rss_bytes);
	CHECK_INT(cpu_ns, >=, load_cpu_ns);
}

static bool symbolizer_is_dead(void)
{
	return !supervisor_running(world.broker->supervisor, peer_only(PEER_SYMBOLIZER)) ||
	       n_seen(PEER_SYMBOLIZER, STARTED) == 2;
}

static void check_progress_again(void)
{
	check_progress(70);
}

static bool symbolizer_is_back(void)
{
	return n_seen(PEER_SYMBOLIZER, STARTED) == 2 && n_seen(PEER_PROFILER, JOINED) == 2;
}

static void check_and_stop(void)
{
	check_progress(70);
	CHECK_INT(n_seen(PEER_PROFILER, STARTED), ==, 1);
	stop();
}

/* All of a capture comes to the next symbolizer, which counts it again. */
static void test_counts_of_a_capture(void)
{
	static const struct step steps[] = {
		{all_have_begun, check_and_kill_symbolizer},
		/* Between the two its page may be of either: what it has begun to count. */
		{symbolizer_is_dead, check_load_is_kept},
		{symbolizer_is_back, check_and_stop},
		{is_done, check_progress_again},
		{NULL, NULL},
	};

	run_recording(steps, &(struct plan){.input_ends = false});
}

/* ---- What it is asked for ---- */

static void ask_too_early(void)
{
	CHECK_INT(broker_flush(world.broker), ==, -EBUSY);
	CHECK_INT(broker_pause(world.broker, true), ==, -EBUSY);
	CHECK(!broker_is_paused(world.broker));
	enable();
	CHECK(broker_flushed(world.broker));
	CHECK_INT(broker_flush(world.broker), ==, 0);
}

static bool one_flush_came(void)
{
	return n_seen(PEER_PROFILER, FLUSHED) == 1;
}

static void flush_again(void)
{
	CHECK_INT(last_value(PEER_PROFILER, FLUSHED), ==, NEVER_DONE);
	CHECK(!broker_flushed(world.broker));
	CHECK_INT(broker_flush(world.broker), ==, 0);
}

static bool it_is_flushed(void)
{
	return broker_flushed(world.broker);
}

static void pause_it(void)
{
	CHECK_INT(broker_pause(world.broker, true), ==, 0);
	CHECK_INT(broker_pause(world.broker, true), ==, 0);
	CHECK(broker_is_paused(world.broker));
	CHECK_INT(broker_pause(world.broker, false), ==, 0);
}

static bool it_goes_on(void)
{
	return n_seen(PEER_PROFILER, PAUSED) == 2 && last_value(PEER_PROFILER, PAUSED) == 0;
}

static void ask_too_late(void)
{
	CHECK(!broker_is_paused(world.broker));
	stop();
	CHECK_INT(broker_flush(world.broker), ==, -EBUSY);
	CHECK_INT(broker_pause(world.broker, true), ==, -EBUSY);
}

static void test_flush_and_pause(void)
{
	static const struct step steps[] = {
		{all_have_begun, ask_too_early},
		{one_flush_came, flush_again},
		{it_is_flushed, pause_it},
		{it_goes_on, ask_too_late},
		{is_done, NULL},
		{NULL, NULL},
	};

	run_recording(steps, &(struct plan){.input_ends = false});
}

/* ---- This process, sampled ---- */

static pid_t target, sleeper;

static struct broker_options sampling(void)
{
	struct broker_options o = {
		.config = world.config,
		.capture = true,
		.interval_ns = 60 * NSEC_PER_SEC,
		.n_events = 1,
		.stacks = SAMPLE_STACKS_FP,
		.only_user = true,
		.pids = &target,
		.n_pids = 1,
		.summary_fd = -EBADF,
		.done = on_done,
	};
	char error[256];

	CHECK_INT(sample_event_parse("cpu-clock", &o.events[0].event, error, sizeof(error)), ==, 0);
	o.events[0].rate_hz = 99;
	return o;
}

static void test_no_such_process(void)
{
	static const struct step none[] = {{NULL, NULL}};
	struct broker_options o = sampling();

	target = fork();
	if (target == 0)
		_exit(0);
	CHECK_INT(waitpid(target, NULL, 0), ==, target);
	CHECK_INT(run(none, &(struct plan){.input_ends = false}, &o), ==, -ESRCH);
	CHECK_INT(shared->n, ==, 0);
}

/* Before the first broker: it hides the memory of this process, and of those it makes from then on,
 * from all but root. */
static void start_sleeper(void)
{
	sleeper = fork();
	CHECK_INT(sleeper, >=, 0);
	if (sleeper == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (sleeper == 0)
		(void)pause();
}

static void end_target(void)
{
	CHECK_INT(kill(target, SIGKILL), ==, 0);
	CHECK_INT(waitpid(target, NULL, 0), ==, target);
}

static void enable_and_kill_profiler(void)
{
	enable();
	CHECK(!broker_targets_gone(world.broker));
	check_progress(70);
	CHECK_INT(kill((pid_t)last_value(PEER_PROFILER, STARTED), SIGKILL), ==, 0);
}

static bool profiler_is_back(void)
{
	return n_seen(PEER_PROFILER, STARTED) == 2 && n_seen(PEER_SYMBOLIZER, JOINED) == 2;
}

static void check_and_end_target(void)
{
	/* It counts what it has seen, and the dead one has seen what it has. */
	check_progress(140);
	CHECK_INT(n_seen(PEER_SYMBOLIZER, STARTED), ==, 1);
	end_target();
	CHECK(broker_targets_gone(world.broker));
	stop();
}

static void check_places(void)
{
	CHECK_INT(world.result, ==, 0);
	CHECK_INT(place_of(PEER_PROFILER, LEFT), <, place_of(PEER_SYMBOLIZER, PLACED));
	CHECK_INT(place_of(PEER_SYMBOLIZER, PLACED), <, place_of(PEER_SYMBOLIZER, STOPPED));
	CHECK_INT(last_value(PEER_SYMBOLIZER, PLACED), ==, 0); /* no child has read the rings */
}

static void test_a_profiler_dies(void)
{
	static const struct step steps[] = {
		{all_have_begun, enable_and_kill_profiler},
		{profiler_is_back, check_and_end_target},
		{is_done, check_places},
		{NULL, NULL},
	};
	struct broker_options o = sampling();

	target = sleeper;
	if (run(steps, &(struct plan){.input_ends = false}, &o) == 0)
		return;
	fprintf(stderr, "left out: no events here\n");
	end_target();
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 1 && strcmp(argv[0], "perfwalk: " OPENER_NAME) == 0)
		return opener_main(); /* the real one: it is no peer */
	if (argc == 1 && strncmp(argv[0], "perfwalk: ", 10) == 0)
		return child_main(argv[0] + 10);
	log_set_level(LOG_LEVEL_ERROR);
	(void)unsetenv("DEBUGINFOD_URLS"); /* no fetcher */
	fd = memfd_create("test", 0);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, sizeof(*shared)), ==, 0);
	CHECK_INT(dup2(fd, SHARED_FD), ==, SHARED_FD); /* the children get it */
	(void)close(fd);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	CHECK(shared != MAP_FAILED);
	CHECK_INT(config_load(&world.config, NULL, false, stderr), ==, 0);
	start_sleeper();
	RUN(test_a_recording_ends);
	RUN(test_a_damaged_recording);
	RUN(test_a_child_fails_at_the_end);
	RUN(test_a_child_that_stays);
	RUN(test_a_kill_asks_nobody);
	RUN(test_counts_of_a_capture);
	RUN(test_flush_and_pause);
	RUN(test_no_such_process);
	RUN(test_a_profiler_dies);
	world.config = config_free(world.config);
	(void)munmap(shared, sizeof(*shared));
	return 0;
}
