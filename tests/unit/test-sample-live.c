/* SPDX-License-Identifier: Apache-2.0 */
/* This host, really sampled: needs the right to profile whole CPUs. */
#include "tests/unit/test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "util/clock.h"

#define MAX_CPUS 256

#define SIDEBAND_BYTES (4 << 20)

/*
 * Where nothing is to be lost, each ring holds what comes in some seconds, for on a busy host this
 * process may not run for as long, and the side band has what all others do.
 */
static struct sample_options options = {
	.rate_hz = 499,
	.stack_bytes = 512,
#ifdef __x86_64__
	.regs_mask = 0xff01ff,
#else
	.regs_mask = UINT64_C(0x1ffffffff),
#endif
	.kernel_stacks = true,
	.ring_bytes = 4 << 20,
	.sideband_bytes = SIDEBAND_BYTES,
};
static struct sample_features features;
static char error[512];

struct session {
	struct merger *m;
	struct sample_cpu cpus[MAX_CPUS];
	int n;
};

static void start_session(struct session *s)
{
	int cpus[MAX_CPUS];

	CHECK_INT(merger_new(&s->m, &options, &features), ==, 0);
	s->n = sample_online_cpus(cpus, MAX_CPUS);
	CHECK_INT(s->n, >, 0);
	for (int i = 0; i < s->n; i++) {
		CHECK_INT(sample_open_cpu(&options, &features, cpus[i], -1, NULL, &s->cpus[i],
					  error, sizeof(error)),
			  ==, 0);
		CHECK_INT(merger_add_cpu(s->m, &s->cpus[i]), ==, 0);
		CHECK_INT(sample_enable_cpu(&s->cpus[i], true), ==, 0);
	}
}

static void end_session(struct session *s)
{
	for (int i = 0; i < s->n; i++) {
		merger_remove_cpu(s->m, s->cpus[i].cpu);
		sample_close_cpu(&s->cpus[i]);
	}
	s->m = merger_free(s->m);
}

/* Uses the CPU for so long, however long that takes. */
static void burn(uint64_t ns)
{
	uint64_t end = clock_get_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_get_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* Maps executable memory, then becomes a shell that uses the CPU for a moment. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (pid)
		return pid;
	if (mmap(NULL, 3 << 12, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		_exit(1);
	burn(100 * NSEC_PER_MSEC);
	execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", NULL);
	_exit(1);
}

/* What is expected of the child, in this order. */
struct story {
	uint64_t forked, anonymous, exec, mapped, exited;
	uint64_t n_before, n_after; /* samples before and after exec */
};

static void tell(struct story *s, pid_t child, const struct record *r)
{
	if (r->pid != (uint32_t)child)
		return;
	switch (r->type) {
	case RECORD_FORK:
		s->forked = r->time_ns;
		break;
	case RECORD_MMAP:
		if (!s->exec && r->mmap.length == 3 << 12)
			s->anonymous = r->time_ns;
		/* Which mapping of the new program it is does not matter. */
		if (s->exec && !s->mapped && r->mmap.path[0] == '/') {
			s->mapped = r->time_ns;
			CHECK(!features.mmap2 || r->mmap.inode);
		}
		break;
	case RECORD_COMM:
		if (strcmp(r->comm.comm, "sh") == 0) {
			CHECK(r->comm.exec == features.comm_exec);
			s->exec = r->time_ns;
		}
		break;
	case RECORD_EXIT:
		s->exited = r->time_ns;
		break;
	case RECORD_SAMPLE:
		/* The exit record is not the last instruction of the exit. */
		CHECK(s->forked && (!s->exited || r->sample.in_kernel));
		*(s->exec ? &s->n_after : &s->n_before) += 1;
		/* Inside the kernel the process may have lost its memory already. */
		CHECK(r->sample.in_kernel || (r->sample.user_regs && r->sample.n_stack));
		break;
	default:
		break;
	}
}

/* Of all drains. Where the host takes a CPU away between a record's time and its coming, it comes
 * later than the merge waits for; on a host that is very busy. */
static uint64_t n_records, n_late;

/* Drains all there is. Returns the records lost. */
static uint64_t drain(struct session *s, bool flush, uint64_t *last, struct story *story,
		      pid_t child)
{
	struct record r;
	struct sample_losses losses;
	uint64_t lost = 0;

	merger_begin(s->m, flush ? UINT64_MAX : 0);
	while (merger_next(s->m, &r)) {
		CHECK(r.type != RECORD_BAD);
		n_records++;
		if (r.time_ns < *last) {
			fprintf(stderr,
				"record %d of pid %u on CPU %u: %" PRIu64 " after %" PRIu64 "\n",
				r.type, r.pid, r.cpu, r.time_ns, *last);
			n_late++;
		} else {
			*last = r.time_ns;
		}
		if (r.type == RECORD_LOST)
			lost += r.lost;
		if (story)
			tell(story, child, &r);
	}
	losses = merger_read_lost(s->m);
	return lost + losses.samples[0] + losses.sideband;
}

static void test_probe(void)
{
	uint64_t before = clock_get_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = sample_probe(&options, -1, &features, error, sizeof(error));

	if (r == -EACCES || r == -EPERM || r == -ENOSYS)
		SKIP("%s", error);
	CHECK_INT(r, ==, 0);
	/* A tenth of it, but on hosts of many CPUs. */
	CHECK_INT(clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - before, <, 2 * NSEC_PER_SEC);
	CHECK(features.kernel);
	CHECK_STR(sample_event_name(&options, &features),
		  features.hardware ? "cycles" : "cpu-clock");
#ifdef __x86_64__
	/*
	 * bp, sp and ip: without them no stack of a system call could be walked. A probe that had
	 * too little of the CPU has seen too little to trust more than sp and ip, or anything.
	 */
	fprintf(stderr, "  registers right inside the kernel: %#" PRIx64 "\n",
		features.kernel_regs_valid);
	if (!features.hardware && features.build_id && features.kernel_regs_valid &&
	    features.kernel_regs_valid != 0x180)
		CHECK_INT(features.kernel_regs_valid & 0x1c0, ==, 0x1c0);
#endif
}

static void test_child_in_order(void)
{
	struct session s = {0};
	struct story story = {0};
	uint64_t last = 0, lost = 0, end;
	pid_t child, pid;

	start_session(&s);
	child = pid = start_child();
	end = clock_monotonic_ns() + 500 * NSEC_PER_MSEC;
	while (clock_monotonic_ns() < end || child) {
		(void)usleep(20000);
		lost += drain(&s, false, &last, &story, pid);
		if (child && waitpid(child, NULL, WNOHANG) == child)
			child = 0;
	}
	lost += drain(&s, true, &last, &story, pid);
	end_session(&s);
	CHECK_INT(lost, ==, 0);
	CHECK(story.forked);
	CHECK_INT(story.anonymous, >, story.forked);
	CHECK_INT(story.exec, >, story.anonymous);
	CHECK_INT(story.mapped, >, story.exec);
	CHECK_INT(story.exited, >, story.mapped);
	CHECK_INT(story.n_before, >, 3);
	CHECK_INT(story.n_after, >, 3);
}

/* Nobody reads while small rings run over: every loss is told, once. */
static void test_loss_is_accounted_for(void)
{
	struct session s = {0};
	uint64_t last = 0, told = 0, known = 0;
	uint64_t counts[3]; /* value, time enabled, lost */

	if (!features.read_lost)
		return;
	options.ring_bytes = 65536;
	options.stack_bytes = 16384;
	options.rate_hz = 2000;
	start_session(&s);
	for (int i = 0; i < 3; i++) {
		burn(50 * NSEC_PER_MSEC);
		told += drain(&s, false, &last, NULL, 0);
	}
	for (int i = 0; i < s.n; i++)
		CHECK_INT(sample_enable_cpu(&s.cpus[i], false), ==, 0);
	told += drain(&s, true, &last, NULL, 0);
	for (int i = 0; i < s.n; i++) {
		CHECK_INT(read(s.cpus[i].sample_fd, counts, sizeof(counts)), ==, sizeof(counts));
		known += counts[2];
		CHECK_INT(read(s.cpus[i].sideband_fd, counts, sizeof(counts)), ==, sizeof(counts));
		known += counts[2];
	}
	CHECK_INT(known, >, 0);
	CHECK_INT(told, ==, known);
	end_session(&s);
	options.ring_bytes = 4 << 20;
	options.stack_bytes = 512;
	options.rate_hz = 499;
}

/* What tells an event that its CPU left behind from a living one. */
static void test_time_enabled(void)
{
	uint64_t first = 0, second = 0, off = 0, later = 0;
	struct session s = {0};

	start_session(&s);
	CHECK_INT(sample_enabled_ns(&s.cpus[0], &first), ==, 0);
	burn(5 * NSEC_PER_MSEC);
	CHECK_INT(sample_enabled_ns(&s.cpus[0], &second), ==, 0);
	CHECK_INT(second, >, first);
	CHECK_INT(sample_enable_cpu(&s.cpus[0], false), ==, 0);
	CHECK_INT(sample_enabled_ns(&s.cpus[0], &off), ==, 0);
	burn(5 * NSEC_PER_MSEC);
	CHECK_INT(sample_enabled_ns(&s.cpus[0], &later), ==, 0);
	CHECK_INT(later, ==, off);
	end_session(&s);
	/* Not an event: an error, and nothing is said. */
	later = 1;
	CHECK_INT(sample_enabled_ns(&s.cpus[0], &later), <, 0);
	CHECK_INT(later, ==, 1);
}

static void test_no_such_cpu(void)
{
	struct sample_cpu c;

	error[0] = '\0';
	CHECK_INT(sample_open_cpu(&options, &features, 8191, -1, NULL, &c, error, sizeof(error)),
		  ==, -ENODEV);
	CHECK(strstr(error, "8191"));
}

static void test_own_task_with_inherit(void)
{
	struct sample_features f;
	struct session s = {0};
	struct story story = {0};
	uint64_t last = 0;
	int cpus[MAX_CPUS];
	pid_t child;

	CHECK_INT(sample_probe(&options, getpid(), &f, error, sizeof(error)), ==, 0);
	CHECK_INT(merger_new(&s.m, &options, &f), ==, 0);
	s.n = sample_online_cpus(cpus, MAX_CPUS);
	for (int i = 0; i < s.n; i++) {
		CHECK_INT(sample_open_cpu(&options, &f, cpus[i], getpid(), NULL, &s.cpus[i], error,
					  sizeof(error)),
			  ==, 0);
		CHECK_INT(merger_add_cpu(s.m, &s.cpus[i]), ==, 0);
		CHECK_INT(sample_enable_cpu(&s.cpus[i], true), ==, 0);
	}
	child = start_child();
	while (waitpid(child, NULL, WNOHANG) != child) {
		CHECK_INT(drain(&s, false, &last, &story, child), ==, 0);
		(void)usleep(10000);
	}
	CHECK_INT(drain(&s, true, &last, &story, child), ==, 0);
	end_session(&s);
	CHECK(story.forked && story.exec && story.exited);
	CHECK_INT(story.n_before, >, 3);
	CHECK_INT(story.n_after, >, 3);
}

static pid_t start_spinning(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	CHECK_INT(pid, >, 0);
	return pid;
}

static void wait_for_cpu_time(pid_t pid, uint64_t ns)
{
	uint64_t end;
	clockid_t id;

	CHECK_INT(clock_getcpuclockid(pid, &id), ==, 0);
	for (end = clock_get_ns(id) + ns; clock_get_ns(id) < end;)
		(void)usleep(5000);
}

/* A second task's events write into the first one's rings. */
static void test_attached_task(void)
{
	struct session s = {0};
	struct sample_cpu attached[MAX_CPUS];
	int cpus[MAX_CPUS];
	uint64_t of_first = 0, of_second = 0;
	struct record r;
	pid_t first, second;

	CHECK_INT(merger_new(&s.m, &options, &features), ==, 0);
	s.n = sample_online_cpus(cpus, MAX_CPUS);
	first = start_spinning();
	second = start_spinning();
	for (int i = 0; i < s.n; i++) {
		CHECK_INT(sample_open_cpu(&options, &features, cpus[i], first, NULL, &s.cpus[i],
					  error, sizeof(error)),
			  ==, 0);
		CHECK_INT(merger_add_cpu(s.m, &s.cpus[i]), ==, 0);
		CHECK_INT(sample_open_cpu(&options, &features, cpus[i], second, &s.cpus[i],
					  &attached[i], error, sizeof(error)),
			  ==, 0);
		CHECK_INT(sample_enable_cpu(&s.cpus[i], true), ==, 0);
		CHECK_INT(sample_enable_cpu(&attached[i], true), ==, 0);
	}
	wait_for_cpu_time(first, 100 * NSEC_PER_MSEC);
	wait_for_cpu_time(second, 100 * NSEC_PER_MSEC);
	(void)kill(first, SIGKILL);
	(void)kill(second, SIGKILL);
	(void)waitpid(first, NULL, 0);
	(void)waitpid(second, NULL, 0);
	merger_begin(s.m, UINT64_MAX);
	while (merger_next(s.m, &r)) {
		of_first += r.type == RECORD_SAMPLE && r.pid == (uint32_t)first;
		of_second += r.type == RECORD_SAMPLE && r.pid == (uint32_t)second;
	}
	for (int i = 0; i < s.n; i++)
		sample_close_cpu(&attached[i]);
	end_session(&s);
	CHECK_INT(of_first, >, 0);
	CHECK_INT(of_second, >, 0);
}

/* The reader dies, another one maps the same events: what was written meanwhile is there. */
static uint64_t n_of_us(struct session *s)
{
	uint64_t n = 0;
	struct record r;

	merger_begin(s->m, UINT64_MAX);
	while (merger_next(s->m, &r))
		n += r.type == RECORD_SAMPLE && r.pid == (uint32_t)getpid();
	return n;
}

/* A tenth as many samples, and from at once: the first ones are not those of the old period. */
static void test_timer(void)
{
	uint64_t period = sample_timer_ns(&options, &features);
	struct session s = {0};

	if (features.hardware) {
		CHECK_INT(period, ==, 0);
		return;
	}
	CHECK_INT(period, ==, NSEC_PER_SEC / options.rate_hz);
	start_session(&s);
	for (int i = 0; i < s.n; i++)
		CHECK_INT(sample_set_timer(sample_fd_in_use(&s.cpus[i]), 10 * period), ==, 0);
	(void)n_of_us(&s);
	burn(100 * period);
	CHECK_INT(n_of_us(&s), <=, 25);
	for (int i = 0; i < s.n; i++)
		CHECK_INT(sample_set_timer(sample_fd_in_use(&s.cpus[i]), period), ==, 0);
	burn(100 * period);
	CHECK_INT(n_of_us(&s), >=, 50);
	end_session(&s);
	CHECK_INT(sample_set_timer(-EBADF, period), ==, -EBADF);
}

static void test_second_reader(void)
{
	struct session s = {0};
	struct merger *heir;
	uint64_t n = 0, last = 0, start = clock_monotonic_ns();
	struct record r;

	start_session(&s);
	burn(20 * NSEC_PER_MSEC);
	(void)drain(&s, true, &last, NULL, 0);
	for (int i = 0; i < s.n; i++)
		s.cpus[i].sample_ring_bytes = options.ring_bytes,
		s.cpus[i].sideband_ring_bytes = SIDEBAND_BYTES;
	/* The rings live as long as anybody maps them. */
	CHECK_INT(merger_new(&heir, &options, &features), ==, 0);
	for (int i = 0; i < s.n; i++)
		CHECK_INT(merger_add_cpu(heir, &s.cpus[i]), ==, 0);
	s.m = merger_free(s.m);
	burn(100 * NSEC_PER_MSEC);
	merger_begin(heir, UINT64_MAX);
	while (merger_next(heir, &r)) {
		CHECK(r.type != RECORD_BAD);
		if (features.clockid)
			CHECK_INT(r.time_ns, >=, start);
		CHECK_INT(r.time_ns, >=, last);
		n += r.type == RECORD_SAMPLE;
	}
	CHECK_INT(n, >, 5);
	s.m = heir;
	end_session(&s);
}

#define CHECK_CPU_NS  (12 * NSEC_PER_MSEC) /* of CPU time, and of all time */
#define CHECK_WALL_NS (5 * NSEC_PER_SEC)

static void stop_here(int sig)
{
	(void)raise(SIGSTOP);
}

/* Stopped in the middle of the check. Where the limit holds, it ends with less CPU time. */
static void check_and_be_stopped(void)
{
	const struct itimerval when = {.it_value.tv_usec = 2000};
	uint64_t regs, cpu_ns = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (signal(SIGPROF, stop_here) == SIG_ERR || setitimer(ITIMER_PROF, &when, NULL) < 0 ||
	    event_self_check(&options, &features, &regs) < 0)
		_exit(2);
	_exit(clock_get_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns < CHECK_CPU_NS ? 0 : 1);
}

/* A check may be over before the timer's next tick. -1: all were. */
static pid_t stop_a_check(void)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();
		int status;

		CHECK_INT(pid, >=, 0);
		if (pid == 0)
			check_and_be_stopped();
		CHECK_INT(waitpid(pid, &status, WUNTRACED), ==, pid);
		if (WIFSTOPPED(status))
			return pid;
	}
	return -1;
}

/* How a check ends that got no CPU for a while. */
static int ends_after_a_stop(void)
{
	const struct timespec pause = {.tv_sec = CHECK_WALL_NS / NSEC_PER_SEC,
				       .tv_nsec = 100 * NSEC_PER_MSEC};
	pid_t pid = stop_a_check();
	int status;

	CHECK_INT(pid, >, 0);
	(void)nanosleep(&pause, NULL);
	CHECK_INT(kill(pid, SIGCONT), ==, 0);
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* On a host so busy that it gets no CPU, the self-check ends all the same. One that the timer's
 * tick stops late has used its CPU time by then. */
static void test_self_check_is_limited(void)
{
	int status = 1;

	for (int i = 0; i < 10 && status == 1; i++)
		status = ends_after_a_stop();
	CHECK_INT(status, ==, 0);
}

int main(void)
{
	RUN(test_probe);
	RUN(test_child_in_order);
	RUN(test_loss_is_accounted_for);
	RUN(test_time_enabled);
	RUN(test_no_such_cpu);
	RUN(test_own_task_with_inherit);
	RUN(test_attached_task);
	RUN(test_timer);
	RUN(test_second_reader);
	RUN(test_self_check_is_limited);
	fprintf(stderr, "%" PRIu64 " of %" PRIu64 " records came late\n", n_late, n_records);
	CHECK_INT(n_late * 100, <=, n_records);
	return 0;
}
