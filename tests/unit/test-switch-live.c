/* SPDX-License-Identifier: Apache-2.0 */
/* Context switches of this host: needs the right to profile whole CPUs, and tracefs. */
#include "tests/unit/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/sample/sample.h"
#include "tests/unit/tracefs.h"
#include "util/clock.h"

#define MAX_CPUS 256
#define N_SLEEPS 40
#define SLEEP_NS (2 * NSEC_PER_MSEC)
/* The alarm is set before the thread stops: as much as it needs in between is missing. */
#define LEAST_NS (SLEEP_NS / 4 * 3)

static struct sample_options options[2]; /* switches, and blocks with their stacks */
static struct sample_features features[2];
static char error[512];

/* The clock of a CPU, the switches, the blocks: the first one brings the side band. */
struct session {
	struct merger *m;
	struct sample_cpu cpus[2][MAX_CPUS];
	int n;
};

static void start_session(struct session *s, pid_t pid)
{
	int cpus[MAX_CPUS];

	CHECK_INT(merger_new(&s->m, &options[0], &features[0]), ==, 0);
	CHECK_INT(merger_add_event(s->m, &options[1], &features[1]), ==, 0);
	s->n = sample_online_cpus(cpus, MAX_CPUS);
	CHECK_INT(s->n, >, 0);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < s->n; i++) {
			int r = sample_open_cpu(&options[k], &features[k], cpus[i], pid, NULL,
						&s->cpus[k][i], error, sizeof(error));

			if (r < 0)
				fprintf(stderr, "%s\n", error);
			CHECK_INT(r, ==, 0);
			CHECK_INT(merger_add_cpu(s->m, &s->cpus[k][i]), ==, 0);
			CHECK_INT(sample_enable_cpu(&s->cpus[k][i], true), ==, 0);
		}
	}
}

static void end_session(struct session *s)
{
	for (int i = 0; i < s->n; i++) {
		merger_remove_cpu(s->m, s->cpus[0][i].cpu);
		sample_close_cpu(&s->cpus[0][i]);
		sample_close_cpu(&s->cpus[1][i]);
	}
	s->m = merger_free(s->m);
}

/* Waits for its turn, then sleeps in one place and gives up its CPU in another. */
static pid_t start_sleeper(int *ret_gate)
{
	const struct timespec t = {.tv_nsec = SLEEP_NS};
	int fds[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe(fds), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)close(fds[1]);
		if (read(fds[0], &c, 1) != 1)
			_exit(1);
		for (int i = 0; i < N_SLEEPS; i++) {
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
			(void)sched_yield();
		}
		_exit(0);
	}
	(void)close(fds[0]);
	*ret_gate = fds[1];
	return pid;
}

struct tale {
	uint64_t sp, ip, out_ns, n_blocks, n_sleeps, slept_ns, n_stacks, n_wrong;
	/* Whether who stops is the one of whom the CPU's last record said that it goes on. */
	uint64_t n_chained, n_holes;
	uint32_t next[MAX_CPUS];
	bool dead;
};

static void on_in(struct tale *t, uint64_t time_ns)
{
	if (t->out_ns && time_ns - t->out_ns >= LEAST_NS) {
		t->n_sleeps++;
		t->slept_ns += time_ns - t->out_ns;
	}
	t->out_ns = 0;
}

/* Most blocks are sleeps, all in one place. */
static void on_out(struct tale *t, const struct record *r, const struct sample_switch *sw)
{
	CHECK_INT(r->tid, ==, sw->prev_id);
	t->dead |= (sw->prev_state & 0x30) != 0;
	if (!(sw->prev_state & 3))
		return;
	CHECK(sw->has_program);
	CHECK(sw->sp != 0 && sw->ip != 0);
	t->out_ns = r->time_ns;
	t->n_blocks++;
	if (t->sp == sw->sp && t->ip == sw->ip)
		return;
	t->n_wrong++;
	t->sp = sw->sp;
	t->ip = sw->ip;
}

static void on_switch(struct tale *t, const struct record *r, const struct sample_switch *sw)
{
	CHECK_INT(r->cpu, <, MAX_CPUS);
	*(t->next[r->cpu] == sw->prev_id ? &t->n_chained : &t->n_holes) += 1;
	t->next[r->cpu] = sw->next_id;
}

static void listen_to(struct session *s, pid_t pid, bool flush, struct tale *t)
{
	struct sample_switch sw;
	struct record r;

	merger_begin(s->m, flush ? UINT64_MAX : 0);
	while (merger_next(s->m, &r)) {
		if (r.type == RECORD_SWITCH_IN && r.tid == (uint32_t)pid)
			on_in(t, r.time_ns);
		if (r.type == RECORD_SAMPLE) {
			CHECK(sample_read_switch(&options[r.index], &r, &sw));
			CHECK(sw.prev_state & 3);
			CHECK(sw.prev_id != 0);
			t->n_stacks += r.tid == (uint32_t)pid && r.sample.n_stack > 0 &&
				       r.sample.n_kernel > 2;
		}
		if (r.type != RECORD_SWITCH)
			continue;
		on_switch(t, &r, &r.sw);
		if (r.tid == (uint32_t)pid)
			on_out(t, &r, &r.sw);
		if (r.sw.next_id == (uint32_t)pid)
			on_in(t, r.time_ns);
	}
}

static void check_sleeper(bool task)
{
	struct session s;
	struct tale t = {.sp = 0};
	int gate, status;
	pid_t pid = start_sleeper(&gate);

	start_session(&s, task ? pid : -1);
	CHECK_INT(write(gate, "", 1), ==, 1);
	for (bool alive = true; alive;) {
		alive = waitpid(pid, &status, WNOHANG) == 0;
		listen_to(&s, pid, false, &t);
		(void)usleep(20000);
	}
	(void)close(gate);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	listen_to(&s, pid, true, &t);
	end_session(&s);
	fprintf(stderr, "%llu sleeps of %llu blocks, %llu places, %llu stacks\n",
		(unsigned long long)t.n_sleeps, (unsigned long long)t.n_blocks,
		(unsigned long long)t.n_wrong, (unsigned long long)t.n_stacks);
	/*
	 * Before its turn it may have blocked, too. Whoever is preempted between setting the alarm
	 * and sleeping sleeps for less. Of some threads perf may never tell that they stop, nor who
	 * goes on then: seen of the idle one of a CPU that had been offline (Linux 6.18).
	 */
	CHECK_INT(t.n_sleeps + (task ? 0 : t.n_holes), >=, N_SLEEPS / 4);
	CHECK(task || t.n_chained > 0);
	CHECK_INT(t.n_sleeps, <=, N_SLEEPS + 1);
	CHECK_INT(t.slept_ns, >=, t.n_sleeps * LEAST_NS);
	/* Page faults that wait are elsewhere, and then it is another place twice. */
	CHECK_INT(t.n_wrong, <, t.n_blocks / 2);
	/* On a busy host the stacks of whole CPUs may all be others'. */
	CHECK_INT(t.n_stacks, >=, task);
	CHECK_INT(t.n_stacks, <=, t.n_blocks);
}

/* Whole CPUs: who goes on stands in the record of who stops. */
static void test_whole_cpus(void)
{
	check_sleeper(false);
}

/* A task alone is told of its returns by records of their own. */
static void test_task(void)
{
	check_sleeper(true);
}

static void set_up(void)
{
	struct sample_switch_fields fields;
	struct sample_event event;

	if (sample_find_switches(&event, &fields, error, sizeof(error)) < 0)
		SKIP("%s", error);
	for (int k = 0; k < 2; k++) {
		options[k] = (struct sample_options){
			.event = event,
			.use = k == 0 ? SAMPLE_USE_SWITCHES : SAMPLE_USE_BLOCKS,
			.switch_fields = fields,
			.index = (uint32_t)k,
			.rate_hz = k == 0 ? 0 : 999,
			.stack_bytes = k == 0 ? 0 : 1024,
			.regs_mask = k == 0 ? sample_place_regs : sample_user_regs,
			.kernel_stacks = k == 1,
			.ring_bytes = 4 << 20,
		};
		if (sample_probe(&options[k], -1, &features[k], error, sizeof(error)) < 0)
			SKIP("%s", error);
		if (!features[k].kernel)
			SKIP("tracepoints are not for this user");
	}
}

int main(void)
{
	mount_tracefs();
	set_up();
	RUN(test_whole_cpus);
	RUN(test_task);
	return 0;
}
