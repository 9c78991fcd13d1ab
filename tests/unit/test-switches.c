/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of blocked threads against schedules that were made up, so that it is known what each thread
 * did: told is what really was, also when records are lost.
 */
#include "src/profile/profile.h"
#include "src/profiler/block-grants.h"
#include "src/profiler/switches.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"

enum {
	N_THREADS = 12,
	N_PLACES = 6, /* of each thread */
	N_CPUS = 3,
	N_STACKS = 2, /* of a place with several */
	MAX_EVENTS = 4096,
	N_SCHEDULES = 400,
};

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = hash_u64(seed + UINT64_C(0x9e3779b97f4a7c15));
	return seed % n;
}

/* ---- A schedule ---- */

struct event {
	uint64_t time_ns;
	uint32_t thread, cpu, place, stack;
	bool out, sampled, lost;
	int64_t state;
};

struct schedule {
	struct event events[MAX_EVENTS];
	uint32_t n;
	uint64_t end_ns;
	/* Time blocked until end_ns, and other time since each thread's first switch. */
	uint64_t blocked[N_THREADS][N_PLACES], blocks[N_THREADS][N_PLACES];
	uint64_t of_stack[N_THREADS][N_PLACES][N_STACKS];
	uint64_t running, waiting, stopped, all;
};

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Every time is another one, so that sorting changes no order within a thread. */
static void plan_thread(struct schedule *s, uint32_t thread, uint32_t n, bool migrates)
{
	uint64_t now = 1000 + random_below(1000) * N_THREADS + thread;
	uint32_t cpu = thread % N_CPUS;

	for (uint32_t i = 0; i < n; i++) {
		static const int64_t states[] = {1, 1, 2, 1, 0, 0x100, 4, 1};
		struct event out = {.time_ns = now,
				    .thread = thread,
				    .cpu = migrates ? (uint32_t)random_below(N_CPUS) : cpu,
				    .place = (uint32_t)random_below(N_PLACES),
				    .stack = (uint32_t)random_below(N_STACKS),
				    .out = true,
				    .state = states[random_below(ARRAY_SIZE(states))]};
		struct event in = out;

		out.sampled = (out.state & 3) && random_below(4) == 0;
		in.out = false;
		in.cpu = migrates ? (uint32_t)random_below(N_CPUS) : cpu;
		in.time_ns += N_THREADS * (1 + random_below(random_below(20) ? 1000 : 5000000));
		now = in.time_ns + N_THREADS * (1 + random_below(3000));
		s->events[s->n++] = out;
		s->events[s->n++] = in;
	}
}

static void plan(struct schedule *s, bool migrates)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t t = 0; t < N_THREADS; t++)
		plan_thread(s, t, 20 + (uint32_t)random_below(60), migrates);
	qsort(s->events, s->n, sizeof(*s->events), by_time);
	s->end_ns = s->events[s->n - 1].time_ns / 2;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The model: what lies between two events of a thread is what the first one began. */
static void find_truth(struct schedule *s)
{
	for (uint32_t i = 0; i < s->n && s->events[i].time_ns < s->end_ns; i++) {
		const struct event *e = &s->events[i];
		uint64_t next = s->end_ns, ns;
		bool ended = false;

		for (uint32_t j = i + 1; j < s->n && !ended; j++) {
			if (s->events[j].thread != e->thread)
				continue;
			next = least(s->events[j].time_ns, s->end_ns);
			ended = true;
		}
		ns = next - e->time_ns;
		s->all += ns;
		if (!e->out)
			s->running += ns;
		else if (!(e->state & 3))
			*(e->state & 4 ? &s->stopped : &s->waiting) += ns;
		else {
			s->blocked[e->thread][e->place] += ns;
			s->of_stack[e->thread][e->place][e->stack] += ns;
			s->blocks[e->thread][e->place] += next < s->end_ns;
		}
	}
}

/* ---- What is told ---- */

struct told {
	uint64_t ns[N_THREADS][N_PLACES], n[N_THREADS][N_PLACES];
	uint64_t of_stack[N_THREADS][N_PLACES][N_STACKS];
	uint64_t seen_ns, not_seen_ns, not_seen_of[N_THREADS];
};

/* A stack's first address is its place, the second says which one it is. */
static void on_wait(void *ctx, const struct switch_wait *w)
{
	struct told *t = ctx;
	uint32_t thread = w->tid - 100;

	CHECK_INT(w->pid, ==, 7 + thread / 4);
	if (!w->stack) {
		t->not_seen_ns += w->ns;
		t->not_seen_of[thread] += w->ns;
		return;
	}
	CHECK_INT(w->stack->n_kernel, ==, 1);
	CHECK_INT(w->stack->n_user, ==, 1);
	t->seen_ns += w->ns;
	t->ns[thread][w->stack->addresses[0]] += w->ns;
	t->n[thread][w->stack->addresses[0]] += w->n;
	t->of_stack[thread][w->stack->addresses[0]][w->stack->addresses[1]] += w->ns;
}

static const struct switches_callbacks callbacks = {.tell = on_wait};

static struct switches *fresh(struct told *t)
{
	const struct switches_limits limits = {
		.threads = 1000, .keys = 1000, .stack_bytes = 1 << 20};
	struct switches *s = NULL;

	memset(t, 0, sizeof(*t));
	CHECK_INT(switches_new(&s, &limits, &callbacks, t), ==, 0);
	return s;
}

/* Two threads share a place in any table by the last bits of their numbers. */
static uint32_t id_of(uint32_t thread)
{
	return 100 + thread / 2 + (thread % 2 << 20);
}

static struct switch_out out_of(const struct event *e)
{
	return (struct switch_out){
		.time_ns = e->time_ns,
		.sp = 0x7000 + e->place,
		.ip = 0x4000,
		.id = id_of(e->thread),
		.pid = 7 + e->thread / 4,
		.tid = 100 + e->thread,
		.cpu = e->cpu,
		.how = switch_how(e->state),
	};
}

static void sample(struct switches *s, const struct event *e, uint32_t n_stacks)
{
	struct switch_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->addresses[0]));
	struct switch_out o = out_of(e);

	CHECK(stack);
	stack->n_kernel = stack->n_user = 1;
	stack->addresses[0] = e->place;
	stack->addresses[1] = e->stack % n_stacks;
	switches_stack(s, &o, stack);
	free(stack);
}

/* The kernel tells that something was lost, but not yet of which CPU. */
static void close_window(struct switches *s, const bool *lost, uint64_t time_ns)
{
	for (uint32_t i = 0; i < N_CPUS; i++) {
		if (lost[i])
			switches_lost(s, SWITCHES_ANY_CPU, time_ns);
	}
	switches_close(s, time_ns);
}

/* Each event; a sampled stack before its record or behind it, and windows that end anywhere. */
static void replay(struct switches *s, const struct schedule *p, uint32_t n_stacks)
{
	bool lost[N_CPUS] = {false};

	for (uint32_t i = 0; i < p->n && p->events[i].time_ns < p->end_ns; i++) {
		const struct event *e = &p->events[i];
		struct switch_out o = out_of(e);
		bool before = random_below(2);

		if (e->lost) {
			lost[e->cpu] = true;
			continue;
		}
		if (lost[e->cpu])
			switches_lost(s, e->cpu, e->time_ns);
		lost[e->cpu] = false;
		if (e->sampled && before)
			sample(s, e, n_stacks);
		if (e->out)
			switches_out(s, &o);
		else
			switches_in(s, o.id, e->cpu, e->time_ns);
		if (e->sampled && !before)
			sample(s, e, n_stacks);
		if (random_below(200) == 0)
			close_window(s, lost, e->time_ns);
	}
	close_window(s, lost, p->end_ns);
}

static uint64_t sum(const struct switch_totals *t)
{
	return t->running_ns + t->waiting_ns + t->blocked_ns + t->stopped_ns + t->unknown_ns;
}

static struct schedule schedule;

/* Nothing lost: to the nanosecond. */
static void test_exact(void)
{
	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		uint64_t keep = seed, blocked = 0, n_all = 0;
		const struct switch_totals *totals;
		struct told told;
		struct switches *s = fresh(&told);

		plan(&schedule, true);
		find_truth(&schedule);
		replay(s, &schedule, 1);
		totals = switches_totals(s);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			uint64_t of_thread = told.not_seen_of[t];

			for (uint32_t k = 0; k < N_PLACES; k++) {
				uint64_t truth = schedule.blocked[t][k];

				/* All of a place, or what was told before it was first seen. */
				CHECK_INT(told.ns[t][k], <=, truth);
				CHECK_INT(told.n[t][k], <=, schedule.blocks[t][k]);
				blocked += truth;
				of_thread += told.ns[t][k];
				n_all += schedule.blocks[t][k];
			}
			for (uint32_t k = 0; k < N_PLACES; k++)
				of_thread -= schedule.blocked[t][k];
			CHECK_INT(of_thread, ==, 0);
		}
		CHECK(n_all > 100);
		CHECK_INT(told.seen_ns + told.not_seen_ns, ==, blocked);
		CHECK_INT(totals->not_seen_ns, ==, told.not_seen_ns);
		CHECK_INT(totals->blocked_ns, ==, blocked);
		CHECK_INT(totals->running_ns, ==, schedule.running);
		CHECK_INT(totals->waiting_ns, ==, schedule.waiting);
		CHECK_INT(totals->stopped_ns, ==, schedule.stopped);
		CHECK_INT(totals->unknown_ns, ==, 0);
		CHECK_INT(totals->n_broken, ==, 0);
		CHECK_INT(totals->n_refused, ==, 0);
		switches_free(s);
		seed = keep;
	}
}

/* One window, so that every place is seen that was ever sampled: all of its time is its own. */
static void test_all_of_a_key(void)
{
	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		bool seen[N_THREADS][N_PLACES] = {{false}};
		uint64_t keep = seed;
		struct told told;
		struct switches *s = fresh(&told);

		plan(&schedule, true);
		find_truth(&schedule);
		for (uint32_t i = 0; i < schedule.n; i++) {
			const struct event *e = &schedule.events[i];
			struct switch_out o = out_of(e);

			if (e->time_ns >= schedule.end_ns)
				break;
			if (e->sampled)
				sample(s, e, 1);
			if (e->out)
				switches_out(s, &o);
			else
				switches_in(s, o.id, e->cpu, e->time_ns);
			seen[e->thread][e->place] |= e->sampled;
		}
		switches_close(s, schedule.end_ns);
		for (uint32_t t = 0; t < N_THREADS; t++)
			for (uint32_t k = 0; k < N_PLACES; k++)
				CHECK_INT(told.ns[t][k], ==,
					  seen[t][k] ? schedule.blocked[t][k] : 0);
		switches_free(s);
		seed = keep;
	}
}

/* Two stacks under one key: the sum is exact, and over many schedules so is the split. */
static void test_split(void)
{
	double told_first = 0, true_first = 0, all = 0;

	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		uint64_t keep = seed;
		struct told told;
		struct switches *s = fresh(&told);

		plan(&schedule, true);
		find_truth(&schedule);
		replay(s, &schedule, N_STACKS);
		CHECK_INT(told.seen_ns + told.not_seen_ns, ==, switches_totals(s)->blocked_ns);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			for (uint32_t k = 0; k < N_PLACES; k++) {
				told_first += (double)told.of_stack[t][k][0];
				true_first += (double)schedule.of_stack[t][k][0] *
					      (double)told.ns[t][k] /
					      (double)(schedule.blocked[t][k] + 1);
				all += (double)told.ns[t][k];
			}
		}
		switches_free(s);
		seed = keep;
	}
	CHECK(told_first - true_first < 0.02 * all && true_first - told_first < 0.02 * all);
}

static void lose(struct schedule *s)
{
	for (int i = 0; i < 6; i++) {
		uint32_t first = (uint32_t)random_below(s->n), cpu = (uint32_t)random_below(N_CPUS);
		uint32_t n = 1 + (uint32_t)random_below(40);

		for (uint32_t k = first; k < s->n && n > 0; k++) {
			if (s->events[k].cpu != cpu)
				continue;
			s->events[k].lost = true;
			n--;
		}
	}
}

/*
 * Threads that stay on their CPU: whatever is lost, no place is told more than it had, and all time
 * between a thread's first switch that came and the end is accounted for.
 */
static void test_losses(void)
{
	uint64_t unknown = 0, all = 0;

	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		uint64_t keep = seed, first[N_THREADS] = {0}, known = 0;
		const struct switch_totals *totals;
		struct told told;
		struct switches *s = fresh(&told);

		plan(&schedule, false);
		find_truth(&schedule);
		lose(&schedule);
		for (uint32_t i = schedule.n; i-- > 0;) {
			const struct event *e = &schedule.events[i];

			if (!e->lost && e->out && e->time_ns < schedule.end_ns)
				first[e->thread] = e->time_ns;
		}
		replay(s, &schedule, 1);
		totals = switches_totals(s);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			known += first[t] ? schedule.end_ns - first[t] : 0;
			for (uint32_t k = 0; k < N_PLACES; k++)
				CHECK_INT(told.ns[t][k], <=, schedule.blocked[t][k]);
		}
		CHECK_INT(sum(totals), ==, known);
		CHECK_INT(told.seen_ns + told.not_seen_ns, ==, totals->blocked_ns);
		CHECK_INT(totals->running_ns, <=, schedule.running);
		CHECK_INT(totals->waiting_ns, <=, schedule.waiting);
		unknown += totals->unknown_ns;
		all += known;
		switches_free(s);
		seed = keep;
	}
	CHECK(unknown > 0 && unknown < all / 2);
}

/* ---- One by one ---- */

static const struct event sleep_at_10 = {.time_ns = 10, .place = 1, .out = true, .state = 1};

static void put(struct switches *s, uint64_t time_ns, int64_t state)
{
	struct event e = sleep_at_10;
	struct switch_out o;

	e.time_ns = time_ns;
	e.state = state;
	o = out_of(&e);
	switches_out(s, &o);
}

static void test_states(void)
{
	CHECK_INT(switch_how(0), ==, SWITCH_PREEMPTED);
	CHECK_INT(switch_how(0x100), ==, SWITCH_PREEMPTED);
	CHECK_INT(switch_how(0x400), ==, SWITCH_PREEMPTED);
	CHECK_INT(switch_how(1), ==, SWITCH_BLOCKED);
	CHECK_INT(switch_how(2), ==, SWITCH_BLOCKED);
	CHECK_INT(switch_how(0x101), ==, SWITCH_BLOCKED);
	CHECK_INT(switch_how(4), ==, SWITCH_STOPPED);
	CHECK_INT(switch_how(8), ==, SWITCH_STOPPED);
	CHECK_INT(switch_how(0x10), ==, SWITCH_DEAD);
	CHECK_INT(switch_how(0x20), ==, SWITCH_DEAD);
	CHECK_INT(switch_how(0x80), ==, SWITCH_STOPPED);
}

/* A wait longer than the window: each window has its part, and the stack is known on. */
static void test_carried_on(void)
{
	struct told told;
	struct switches *s = fresh(&told);

	sample(s, &sleep_at_10, 1);
	put(s, 10, 1);
	switches_close(s, 110);
	CHECK_INT(told.ns[0][1], ==, 100);
	CHECK_INT(told.n[0][1], ==, 0);
	switches_close(s, 1110);
	CHECK_INT(told.ns[0][1], ==, 1100);
	switches_in(s, 100, 0, 1210);
	switches_close(s, 2000);
	CHECK_INT(told.ns[0][1], ==, 1200);
	CHECK_INT(told.n[0][1], ==, 1);
	switches_free(s);
}

/* Two that stop in a row: one record is missing, the time is nobody's. */
static void test_broken_pairs(void)
{
	struct told told;
	struct switches *s = fresh(&told);

	sample(s, &sleep_at_10, 1);
	put(s, 10, 1);
	put(s, 50, 1);
	CHECK_INT(switches_totals(s)->unknown_ns, ==, 40);
	switches_in(s, 100, 0, 70);
	switches_in(s, 100, 0, 100);
	CHECK_INT(switches_totals(s)->unknown_ns, ==, 70);
	CHECK_INT(switches_totals(s)->n_broken, ==, 2);
	switches_close(s, 100);
	CHECK_INT(told.ns[0][1], ==, 20);
	/* It went on after what its CPU told last: until then it was blocked for sure. */
	put(s, 110, 1);
	switches_in(s, 4711, 0, 190);
	put(s, 200, 1);
	CHECK_INT(switches_totals(s)->unknown_ns, ==, 80);
	switches_in(s, 100, 0, 200);
	switches_close(s, 200);
	CHECK_INT(told.ns[0][1], ==, 100);
	/* One that never stopped is nobody. */
	switches_in(s, 4711, 0, 100);
	switches_close(s, 1000);
	CHECK_INT(switches_totals(s)->running_ns, ==, 810);
	switches_free(s);
}

static void test_ends(void)
{
	struct told told;
	struct switches *s = fresh(&told);

	/* The end of a thread tells its time at once. */
	sample(s, &sleep_at_10, 1);
	put(s, 10, 1);
	switches_in(s, 100, 0, 60);
	put(s, 70, 0x10);
	CHECK_INT(told.ns[0][1], ==, 50);
	/* Another one of that number begins with nothing known, neither time nor stack. */
	put(s, 200, 1);
	switches_in(s, 100, 0, 230);
	switches_close(s, 300);
	CHECK_INT(told.ns[0][1], ==, 50);
	CHECK_INT(told.not_seen_ns, ==, 30);
	switches_end(s, 100, 0);
	switches_end(s, 100, 0);
	switches_close(s, 400);
	CHECK_INT(switches_totals(s)->running_ns, ==, 80);
	switches_free(s);
}

static bool wants_even(void *ctx, const struct switch_out *first)
{
	return first->id % 2 == 0;
}

/* Threads that were found blocked: one goes on, one was wrongly found, one is known already. */
static void test_stands(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	const struct switch_totals *t = switches_totals(s);
	struct switch_out o = {.id = 100, .pid = 7, .tid = 100, .sp = 1, .ip = 2, .time_ns = 1000};

	switches_stands(s, &o);
	switches_in(s, 100, 0, 1400); /* blocked 400 */
	o.time_ns = 1450;
	switches_stands(s, &o); /* it runs: known */
	o.time_ns = 1500;
	switches_out(s, &o); /* ran 100 */
	switches_in(s, 100, 0, 1510);
	o = (struct switch_out){.id = 101, .pid = 7, .tid = 101, .sp = 1, .ip = 2, .time_ns = 1000};
	switches_stands(s, &o);
	o.time_ns = 1300;
	switches_out(s, &o); /* what it did is anybody's guess */
	switches_in(s, 101, 0, 1320);
	switches_close(s, 1600);
	CHECK_INT(t->blocked_ns, ==, 400 + 10 + 20);
	CHECK_INT(t->running_ns, ==, 100 + 90 + 280);
	CHECK_INT(t->unknown_ns, ==, 300);
	CHECK_INT(t->n_broken, ==, 0);
	switches_free(s);
	/* Found 200 after all switches are recorded. */
	s = fresh(&told);
	t = switches_totals(s);
	switches_follow(s, 800);
	o.time_ns = 1000;
	switches_stands(s, &o);
	switches_close(s, 1600);
	CHECK_INT(t->before_ns, ==, 200);
	CHECK_INT(t->blocked_ns, ==, 600);
	switches_free(s);
}

/* Threads that were found running, or waiting for a CPU: the next switch says which. */
static void test_found_runnable(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	const struct switch_totals *t = switches_totals(s);

	for (uint32_t id = 100; id < 103; id++)
		switches_stands(s, &(struct switch_out){.id = id,
							.pid = 7,
							.tid = id,
							.time_ns = 1000,
							.how = SWITCH_PREEMPTED});
	switches_in(s, 100, 0, 1300); /* waited 300 */
	switches_out(s, &(struct switch_out){.id = 101, .pid = 7, .tid = 101, .time_ns = 1070});
	switches_close(s, 1500); /* the third has no switch: it ran */
	CHECK_INT(t->waiting_ns, ==, 300);
	CHECK_INT(t->running_ns, ==, 200 + 70 + 500);
	CHECK_INT(t->blocked_ns, ==, 430);
	CHECK_INT(t->unknown_ns, ==, 0);
	CHECK_INT(t->n_broken, ==, 0);
	switches_free(s);
}

/* The first switch of a thread, on that CPU. */
static void first_out(struct switches *s, uint32_t id, uint32_t cpu, uint64_t time_ns)
{
	switches_out(s, &(struct switch_out){.id = id,
					     .pid = 7,
					     .tid = id,
					     .cpu = cpu,
					     .time_ns = time_ns,
					     .how = SWITCH_PREEMPTED});
}

/* Time before the first switch of threads: each has all time since the beginning, in the end. */
static void test_followed(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	const struct switch_totals *t = switches_totals(s);

	switches_follow(s, 1000);
	first_out(s, 100, 0, 1500); /* nobody came there before: it ran 500 */
	switches_in(s, 101, 0, 1500);
	first_out(s, 101, 0, 1700); /* ran 200, 500 before that */
	switches_in(s, 4711, 1, 1550);
	first_out(s, 102, 1, 1600); /* its switch is missing: 600 before */
	switches_close(s, 2000);    /* waited 500, 300, 400 */
	CHECK_INT(t->running_ns, ==, 500 + 200);
	CHECK_INT(t->before_ns, ==, 500 + 600);
	CHECK_INT(t->waiting_ns, ==, 500 + 300 + 400);
	CHECK_INT(sum(t) + t->before_ns, ==, 3 * 1000);
	/* In the next window only its time counts, and after a loss what is known again. */
	switches_in(s, 103, 0, 2100);
	first_out(s, 103, 0, 2300); /* ran 200, 100 before */
	switches_in(s, 104, 0, 2300);
	switches_lost(s, SWITCHES_ANY_CPU, 2400);
	first_out(s, 104, 0, 2500); /* ran since the loss: 400 before */
	first_out(s, 105, 2, 2500); /* so did this one */
	CHECK_INT(t->running_ns, ==, 700 + 200 + 100 + 100);
	CHECK_INT(t->before_ns, ==, 1100 + 100 + 400 + 400);
	switches_close(s, 3000);
	CHECK_INT(sum(t) + t->before_ns, ==, 3 * 1000 + 6 * 1000);
	/* In a gap nobody knows, and in a pause nothing counts. */
	switches_in(s, 106, 2, 3100);
	switches_gap(s, 3200, 3300);
	first_out(s, 106, 2, 3400);
	CHECK_INT(t->before_ns, ==, 2000 + 300);
	switches_pause(s, 4000);
	CHECK_INT(sum(t) + t->before_ns, ==, 9 * 1000 + 7 * 1000);
	first_out(s, 107, 0, 5000);
	switches_follow(s, 6000);
	first_out(s, 100, 0, 6100); /* it ran since */
	switches_close(s, 7000);
	CHECK_INT(sum(t) + t->before_ns, ==, 16 * 1000 + 2000 + 1000);
	switches_free(s);
}

/* From its start to its end, and another program in between: nothing is left out. */
static void test_whole_life(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	const struct switch_totals *t = switches_totals(s);
	struct switch_out o = {.id = 100, .pid = 7, .tid = 100, .sp = 1, .ip = 2, .time_ns = 1000};

	switches_begin(s, &o, false);
	switches_in(s, 100, 0, 1030); /* waited 30 */
	o.time_ns = 1100;	      /* ran 70 */
	switches_out(s, &o);
	switches_in(s, 100, 0, 1500); /* blocked 400 */
	o.time_ns = 1600;
	switches_begin(s, &o, true); /* known: nothing */
	switches_end(s, 100, 1600);  /* ran 100; then another program */
	switches_begin(s, &o, true);
	o.time_ns = 1650;
	o.how = SWITCH_PREEMPTED;
	switches_out(s, &o); /* ran 50 */
	switches_in(s, 100, 0, 1700);
	switches_end(s, 100, 1790);
	CHECK_INT(t->waiting_ns, ==, 30 + 50);
	CHECK_INT(t->running_ns, ==, 70 + 100 + 50 + 90);
	CHECK_INT(t->blocked_ns, ==, 400);
	CHECK_INT(t->n_broken, ==, 0);
	switches_free(s);
}

/* Whose time is not taken is asked about once, and never told. */
static void test_wanted(void)
{
	const struct switches_callbacks some = {
		.tell = on_wait, .wants = wants_even, .wants_stays = true};
	const struct switches_limits limits = {.threads = 100, .keys = 100, .stack_bytes = 1 << 10};
	struct told told = {.seen_ns = 0};
	struct switches *s = NULL;

	CHECK_INT(switches_new(&s, &limits, &some, &told), ==, 0);
	for (uint32_t t = 0; t < 4; t++) {
		struct switch_out o = out_of(&sleep_at_10);

		o.id = o.tid = 100 + t;
		CHECK_INT(switches_offer_stack(s, &o), ==, t % 2 == 0);
		switches_out(s, &o);
		switches_in(s, o.id, 0, 60);
		o.how = SWITCH_DEAD;
		o.time_ns = 70;
		switches_out(s, &o);
	}
	CHECK_INT(told.not_seen_of[0] + told.not_seen_of[2], ==, 100);
	CHECK_INT(told.not_seen_ns, ==, 100);
	CHECK_INT(switches_totals(s)->running_ns, ==, 20);
	switches_free(s);
}

static bool wants_now;

static bool ask(void *ctx, const struct switch_out *out)
{
	return wants_now;
}

/* A thread runs from in_ns to out_ns, and then blocks. */
static void run(struct switches *s, uint64_t in_ns, uint64_t out_ns)
{
	struct switch_out o = out_of(&sleep_at_10);

	switches_in(s, o.id, 0, in_ns);
	o.time_ns = out_ns;
	switches_out(s, &o);
}

/* Who is wanted later is asked about again: in each window, and when its name changes. */
static void test_wanted_later(void)
{
	const struct switches_callbacks some = {.tell = on_wait, .wants = ask};
	const struct switches_limits limits = {.threads = 100, .keys = 100, .stack_bytes = 1 << 10};
	struct switch_out o = out_of(&sleep_at_10);
	struct told told = {.seen_ns = 0};
	const struct switch_totals *t;
	struct switches *s = NULL;

	CHECK_INT(switches_new(&s, &limits, &some, &told), ==, 0);
	t = switches_totals(s);
	wants_now = false;
	switches_follow(s, 100);
	run(s, 100, 110);
	wants_now = true;
	run(s, 120, 130); /* the same window: out still */
	switches_close(s, 1000);
	run(s, 1010, 1020); /* the first switch at which it is wanted */
	run(s, 1050, 1070);
	switches_close(s, 1100);
	CHECK_INT(t->blocked_ns, ==, 30 + 30);
	CHECK_INT(t->running_ns, ==, 20);
	CHECK_INT(told.not_seen_ns, ==, 60);
	wants_now = false;
	run(s, 1110, 1120); /* told up to here, and then no more */
	run(s, 1150, 1180);
	switches_close(s, 1200);
	CHECK_INT(t->blocked_ns, ==, 60 + 10);
	CHECK_INT(t->running_ns, ==, 20 + 10);
	/* It gets a name of those that are wanted. */
	switches_in(s, o.id, 0, 1210);
	wants_now = true;
	o.time_ns = 1215;
	switches_judge(s, &o);
	o.time_ns = 1220;
	switches_out(s, &o);
	CHECK_INT(t->running_ns, ==, 30 + 5);
	switches_in(s, o.id, 0, 1250);
	CHECK_INT(t->blocked_ns, ==, 70 + 30);
	/* And back. */
	o.time_ns = 1260;
	switches_tell(s, o.id, o.time_ns);
	wants_now = false;
	switches_judge(s, &o);
	run(s, 1300, 1310);
	switches_close(s, 1400);
	CHECK_INT(t->running_ns, ==, 35 + 10);
	CHECK_INT(t->blocked_ns, ==, 100);
	CHECK_INT(told.not_seen_ns, ==, 100);
	CHECK_INT(t->n_broken + t->unknown_ns + t->before_ns, ==, 0);
	switches_free(s);
}

/* A stack that was always the same is looked at now and then; one of several each time. */
static void test_well_known(void)
{
	struct switch_out o = out_of(&sleep_at_10);
	struct event other = sleep_at_10;
	struct told told;
	struct switches *s = fresh(&told);
	uint32_t n = 0;

	for (int i = 0; i < 160; i++) {
		bool wanted = switches_offer_stack(s, &o);

		n += wanted;
		if (wanted)
			sample(s, &sleep_at_10, 2);
	}
	CHECK_INT(n, >=, 20);
	CHECK_INT(n, <=, 30);
	other.stack = 1;
	sample(s, &other, 2);
	for (int i = 0; i < 160; i++)
		CHECK(switches_offer_stack(s, &o));
	switches_free(s);
}

static void offer(struct switches *s, const struct event *e, uint32_t n, uint32_t apart)
{
	struct event at = *e;
	struct switch_out o;

	for (uint32_t i = 0; i < n; i++, at.place += apart) {
		o = out_of(&at);
		if (switches_offer_stack(s, &o))
			sample(s, &at, 2);
	}
}

/* Where most places are known; few samples say nothing. */
static void test_enough(void)
{
	struct event other = sleep_at_10;
	struct told told;
	struct switches *s = fresh(&told);

	CHECK_INT(switches_enough_stacks(s), ==, UINT32_MAX);
	offer(s, &sleep_at_10, 100, 1);
	CHECK_INT(switches_enough_stacks(s), ==, UINT32_MAX);
	offer(s, &sleep_at_10, 100, 0);
	CHECK_INT(switches_enough_stacks(s), ==, 512);
	offer(s, &sleep_at_10, 30, 1);
	CHECK_INT(switches_enough_stacks(s), ==, 512);
	offer(s, &sleep_at_10, 100, 1);
	CHECK_INT(switches_enough_stacks(s), ==, UINT32_MAX);
	other.stack = 1;
	offer(s, &other, 100, 0);
	CHECK_INT(switches_enough_stacks(s), ==, 1024);
	switches_free(s);
}

/* So many blocks in a row, each for so long. */
static void block(struct switches *s, struct event *e, uint32_t place, uint32_t n, uint64_t ns)
{
	e->place = place;
	for (uint32_t i = 0; i < n; i++) {
		struct switch_out o = out_of(e);

		switches_out(s, &o);
		switches_in(s, o.id, e->cpu, e->time_ns + ns);
		e->time_ns += ns + 1000;
	}
}

/* In how many of n seconds. */
static uint32_t times_known(struct switches *s, struct event *e, uint32_t place, uint32_t n)
{
	uint32_t times = 0;

	for (uint32_t i = 0; i < n; i++) {
		block(s, e, place, 100, 1000);
		e->time_ns += NSEC_PER_SEC;
		times += switches_places_known(s, e->time_ns);
	}
	return times;
}

/* By the time of short blocks: no other ones wait for a sample. Places are known when they were for
 * some seconds in a row. */
static void test_known(void)
{
	struct event now = sleep_at_10, other = sleep_at_10;
	struct told told;
	struct switches *s = fresh(&told);

	CHECK_INT(times_known(s, &now, 1, 5), ==, 0);
	sample(s, &sleep_at_10, 2);
	CHECK_INT(times_known(s, &now, 1, 3), ==, 1);
	CHECK_INT(times_known(s, &now, 1, 3), ==, 3);
	/* A hundredth is not known, and then three. */
	block(s, &now, 2, 1, 1000);
	CHECK_INT(times_known(s, &now, 1, 1), ==, 1);
	block(s, &now, 2, 1, 3000);
	CHECK_INT(times_known(s, &now, 1, 1), ==, 0);
	CHECK_INT(times_known(s, &now, 1, 3), ==, 1);
	block(s, &now, 3, 1, 20000000);
	CHECK_INT(times_known(s, &now, 1, 1), ==, 1);
	/* Time that is split is estimated. */
	other.stack = 1;
	sample(s, &other, 2);
	CHECK_INT(times_known(s, &now, 1, 5), ==, 0);
	/* Nobody blocks: there is nothing to learn. */
	for (int i = 1; i <= 5; i++, now.time_ns += NSEC_PER_SEC)
		CHECK_INT(switches_places_known(s, now.time_ns + NSEC_PER_SEC), ==, i >= 3);
	switches_free(s);
}

/* A program begins: at once, however little of all time that is. */
static void test_unknown_at_once(void)
{
	struct event now = sleep_at_10;
	struct told told;
	struct switches *s = fresh(&told);

	sample(s, &sleep_at_10, 2);
	CHECK_INT(times_known(s, &now, 1, 3), ==, 1);
	block(s, &now, 1, 900, 1000000);
	block(s, &now, 2, 9, 1000000);
	CHECK(switches_places_known(s, now.time_ns));
	block(s, &now, 2, 2, 1000000);
	CHECK(!switches_places_known(s, now.time_ns));
	switches_free(s);
}

/* With a quarter of the samples, as many are looked at. */
static void test_verified_as_often(void)
{
	struct event now = sleep_at_10;
	struct switch_out o = out_of(&sleep_at_10);
	struct told told;
	struct switches *s = fresh(&told);
	uint32_t n = 0;

	offer(s, &sleep_at_10, 100, 0);
	CHECK_INT(times_known(s, &now, 1, 3), ==, 1);
	for (int i = 0; i < 160; i++)
		n += switches_offer_stack(s, &o);
	CHECK_INT(n, ==, 40);
	switches_free(s);
}

static uint32_t times_used_up(struct block_grants *g, uint32_t cpu, uint64_t begin_ns,
			      uint64_t apart_ns, uint32_t n, uint32_t enough)
{
	uint32_t times = 0;

	for (uint32_t i = 0; i < n; i++)
		times += block_grants_used_up(g, cpu, begin_ns + i * apart_ns, enough);
	return times;
}

static void test_grants(void)
{
	struct block_grants *g = block_grants_new();

	CHECK_INT(times_used_up(g, 1, 1, 1000000, 1000, 64), ==, 1000 / 64);
	CHECK_INT(times_used_up(g, 0, 1, 1000000, 1000, 249), ==, 4);
	CHECK_INT(times_used_up(g, 0, UINT64_C(5000000000), 1000000, 1000, 251), ==, 0);
	CHECK_INT(times_used_up(g, 4097, UINT64_C(5000000000), 4000000, 1000, 64), ==, 0);
	CHECK_INT(times_used_up(g, 2, 1, 1, 10000, UINT32_MAX), ==, 0);
	free(g);
}

static void test_pause(void)
{
	struct told told;
	struct switches *s = fresh(&told);

	sample(s, &sleep_at_10, 1);
	put(s, 10, 1);
	switches_pause(s, 100);
	CHECK_INT(told.ns[0][1], ==, 90);
	switches_in(s, 100, 0, 5000);
	put(s, 5010, 1);
	switches_close(s, 5020);
	CHECK_INT(told.ns[0][1], ==, 100);
	CHECK_INT(switches_totals(s)->unknown_ns, ==, 0);
	switches_free(s);
}

/* Full tables: time of what has no room is told without a stack, and nothing is forgotten of what
 * has. */
static void test_limits(void)
{
	const struct switches_limits limits = {.threads = 2, .keys = 2, .stack_bytes = 1 << 10};
	struct switches *s = NULL;
	struct told told = {.seen_ns = 0};
	struct event e = sleep_at_10;
	struct switch_out o;

	CHECK_INT(switches_new(&s, &limits, &callbacks, &told), ==, 0);
	for (e.thread = 0; e.thread < 3; e.thread++) {
		for (e.place = 0; e.place < 2; e.place++) {
			e.time_ns += 10;
			o = out_of(&e);
			sample(s, &e, 1);
			switches_out(s, &o);
			switches_in(s, o.id, 0, e.time_ns + 5);
		}
	}
	switches_close(s, e.time_ns);
	CHECK_INT(told.ns[0][0], ==, 5);
	CHECK_INT(told.ns[0][1], ==, 5);
	CHECK_INT(told.not_seen_of[1], ==, 10);
	CHECK_INT(told.not_seen_of[2], ==, 0);
	CHECK(switches_totals(s)->n_refused >= 3);
	/* Keys that are not used any more make room. */
	switches_close(s, e.time_ns + 100);
	switches_close(s, e.time_ns + 200);
	e.thread = 1;
	e.place = 3;
	e.time_ns += 300;
	sample(s, &e, 1);
	o = out_of(&e);
	switches_out(s, &o);
	switches_close(s, e.time_ns + 50);
	CHECK_INT(told.ns[1][3], ==, 50);
	switches_free(s);
}

/* ---- Late reads ---- */

/* Offered is who is blocked for long without a stack, each place a few times; and it is known
 * whether a block was over before. */
static void test_late(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out block, again;
	struct event e = {.time_ns = 1000, .thread = 3, .place = 2, .out = true, .state = 1};
	struct switch_out o = out_of(&e);

	o.spot.regs[2] = 77;
	switches_out(s, &o);
	CHECK_INT(switches_unseen(s, 1999, 1000, &block, 1), ==, 0);
	CHECK_INT(switches_unseen(s, 2000, 1000, &block, 1), ==, 1);
	CHECK_INT(block.time_ns, ==, 1000);
	CHECK_INT(block.id, ==, o.id);
	CHECK_INT(block.sp, ==, o.sp);
	CHECK_INT(block.ip, ==, o.ip);
	CHECK_INT(block.spot.regs[2], ==, 77);
	CHECK(switches_lasted(s, &block, 5000));
	/* It ends, and the next block begins: what is known of the one before stays. */
	switches_in(s, o.id, 0, 6000);
	CHECK(switches_lasted(s, &block, 5999));
	CHECK(!switches_lasted(s, &block, 6000));
	o.time_ns = 7000;
	switches_out(s, &o);
	CHECK(switches_lasted(s, &block, 5999));
	CHECK(!switches_lasted(s, &block, 6000));
	CHECK_INT(switches_unseen(s, 9000, 1000, &again, 1), ==, 1);
	CHECK(!switches_lasted(s, &block, 5999));
	CHECK(switches_lasted(s, &again, 8000));
	/* Records were lost: it may have run. */
	switches_lost(s, SWITCHES_ANY_CPU, 9000);
	CHECK(!switches_lasted(s, &again, 8000));
	/* Known by now, and so not offered any more. */
	o.time_ns = 10000;
	switches_out(s, &o);
	e.time_ns = 10000;
	sample(s, &e, 1);
	CHECK_INT(switches_unseen(s, 99000, 1000, &again, 1), ==, 0);
	/* Elsewhere, but nobody can read it. */
	o.sp = 0x9000;
	for (int i = 0; i < 10; i++) {
		switches_in(s, o.id, 0, 100000 + 10000 * (uint64_t)i);
		o.time_ns = 101000 + 10000 * (uint64_t)i;
		switches_out(s, &o);
		CHECK_INT(switches_unseen(s, o.time_ns + 5000, 1000, &again, 1), ==, i < 3);
	}
	switches_free(s);
}

/* The sample came before the runtime was ready. The thread still blocks there, so another look may
 * find what was missing, which is then of all its blocks there. */
static void test_unread(void)
{
	enum { LATE_NS = 1000, TRIES = 16 };
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out o = {.time_ns = 1000, .sp = 1, .ip = 1, .id = 100, .pid = 7, .tid = 100};
	struct switch_out block;
	struct switch_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->addresses[0]));
	uint64_t age = LATE_NS;

	CHECK(stack);
	stack->n_kernel = stack->n_user = 1;
	stack->marker = PROFILE_MARKER_RUNTIME_LATE;
	switches_out(s, &o);
	switches_stack(s, &o, stack);
	for (int i = 0; i < TRIES; i++, age *= 2) {
		CHECK_INT(switches_unseen(s, o.time_ns + age - 1, LATE_NS, &block, 1), ==, 0);
		CHECK_INT(switches_unseen(s, o.time_ns + age, LATE_NS, &block, 1), ==, 1);
		CHECK(switches_wants(s, &block, false));
		switches_offer_again(s, &block);
		switches_stack(s, &block, stack);
	}
	CHECK_INT(switches_unseen(s, o.time_ns + age, LATE_NS, &block, 1), ==, 0);
	stack->marker = PROFILE_N_MARKERS;
	stack->addresses[0] = 1;
	switches_stack(s, &block, stack);
	CHECK(!switches_wants(s, &block, false));
	switches_in(s, 100, 0, 2000000000);
	switches_close(s, 3000000000);
	CHECK_INT(told.ns[0][0], ==, 0);
	CHECK_INT(told.ns[0][1], ==, 1999999000);
	free(stack);
	switches_free(s);
}

/* A known place whose block lasts unusually long is looked at once more. What that says is of this
 * block alone. */
static void test_unusual(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out o = {.time_ns = 1000, .sp = 1, .ip = 1, .id = 100, .pid = 7, .tid = 100};
	struct switch_out block;
	struct switch_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->addresses[0]));

	CHECK(stack);
	stack->n_kernel = stack->n_user = 1;
	switches_out(s, &o);
	switches_stack(s, &o, stack);
	switches_in(s, 100, 0, 300001000);
	for (uint64_t i = 0; i < 2; i++) {
		o.time_ns = UINT64_C(1000000000) + i * UINT64_C(4000000000);
		CHECK(!switches_wants(s, &o, false));
		switches_out(s, &o);
		CHECK_INT(switches_unseen(s, o.time_ns + 1199999999, 1000, &block, 1), ==, 0);
		/* Within a second, known places are looked at once. The first block lasts three
		 * seconds: three are not four times as long. */
		CHECK_INT(switches_unseen(s, o.time_ns + 2199999998, 1000, &block, 1), ==, 0);
		CHECK_INT(switches_unseen(s, o.time_ns + 2199999999, 1000, &block, 1), ==, i == 0);
		CHECK_INT(switches_unseen(s, o.time_ns + 2199999999, 1000, &block, 1), ==, 0);
		if (i == 0) {
			stack->addresses[0] = 1;
			stack->alone = true;
			switches_stack(s, &block, stack);
		}
		switches_in(s, 100, 0, o.time_ns + 3000000000);
	}
	switches_close(s, 9000000000);
	CHECK_INT(told.ns[0][0], ==, 3300000000);
	CHECK_INT(told.ns[0][1], ==, 3000000000);
	free(stack);
	switches_free(s);
}

/* Where an interpreter runs, each long block is looked at that has no stack of its own, or one
 * without proven frames of the interpreter; and one in so many when some were seen. */
static void test_varies(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out o = {.sp = 1, .ip = 1, .id = 100, .pid = 7, .tid = 100}, block;
	struct switch_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->addresses[0]));
	uint32_t n_offered = 0;

	CHECK(stack);
	stack->n_kernel = stack->n_user = 1;
	stack->varies = true;
	for (uint64_t i = 0; i < 1600; i++) {
		bool sampled = i % 4 == 2, late = i % 4 == 3, offered;

		o.time_ns = 1000 + i * 1000000;
		stack->addresses[0] = i % 2;
		stack->marker = !late	     ? PROFILE_N_MARKERS
				: i % 8 == 3 ? PROFILE_MARKER_RUNTIME_LATE
					     : PROFILE_MARKER_RUNTIME_UNPROVEN;
		switches_out(s, &o);
		if (i < 16 && (sampled || late))
			switches_stack(s, &o, stack);
		offered = switches_unseen(s, o.time_ns + 500000, 1000, &block, 1) == 1;
		if (i < 12)
			CHECK_INT(offered, ==, !sampled);
		n_offered += i >= 16 && offered;
		stack->marker = PROFILE_N_MARKERS;
		if (offered && i < 16) {
			CHECK(switches_wants(s, &block, false));
			switches_stack(s, &block, stack);
		}
		CHECK_INT(switches_unseen(s, o.time_ns + 600000, 1000, &block, 1), ==, 0);
		switches_in(s, 100, 0, o.time_ns + 700000);
		if (i < 12) {
			/* The time of each is that of its own stack. */
			switches_close(s, o.time_ns + 700000);
			CHECK_INT(told.ns[0][i % 2], ==, 700000 * (i / 2 + 1));
		}
	}
	CHECK(n_offered > 40 && n_offered < 200);
	free(stack);
	switches_free(s);
}

/* Who could not read a block gets it again, and no other; not for ever. */
static void test_again(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out o = {.sp = 1, .ip = 1, .id = 100, .pid = 7, .tid = 100}, block, other;
	uint32_t n_again = 0;

	o.time_ns = 1000;
	switches_out(s, &o);
	CHECK_INT(switches_unseen(s, 5000, 1000, &block, 1), ==, 1);
	switches_offer_again(s, &block);
	switches_in(s, 100, 0, 6000);
	/* That block is over. */
	switches_offer_again(s, &block);
	o.time_ns = 10000;
	switches_out(s, &o);
	other = block;
	while (switches_unseen(s, 20000, 1000, &block, 1) == 1) {
		CHECK_INT(block.time_ns, ==, 10000);
		switches_offer_again(s, &other);
		switches_offer_again(s, &block);
		n_again++;
	}
	CHECK_INT(n_again, ==, 15 + 3);
	switches_free(s);
}

/* Where nobody knows where threads block, each block is offered, however short it is; and no stack
 * of long blocks is given to short ones. */
static void test_anywhere(void)
{
	struct told told;
	struct switches *s = fresh(&told);
	struct switch_out o = {.time_ns = 1000, .id = 100, .pid = 7, .tid = 100}, block, again;
	struct switch_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->addresses[0]));

	CHECK(stack);
	stack->n_kernel = stack->n_user = 1;
	/* A short block that nobody saw. */
	switches_out(s, &o);
	switches_in(s, 100, 0, 1300);
	/* Two long ones, the first of them seen. */
	o.time_ns = 2000;
	switches_out(s, &o);
	CHECK_INT(switches_unseen(s, 2001, 1000, &block, 1), ==, 1);
	CHECK_INT(switches_unseen(s, 3000, 1000, &again, 1), ==, 0);
	CHECK(switches_lasted(s, &block, 2500));
	switches_stack(s, &block, stack);
	switches_in(s, 100, 0, 40002000);
	o.time_ns = 40003000;
	switches_out(s, &o);
	switches_in(s, 100, 0, 60003000);
	switches_close(s, 60004000);
	CHECK_INT(told.ns[0][0], ==, 60000000);
	CHECK_INT(told.n[0][0], ==, 1);
	CHECK_INT(told.not_seen_of[0], ==, 300);
	/* A short one is seen elsewhere, which says nothing of the next one. */
	o.time_ns = 60005000;
	switches_out(s, &o);
	CHECK_INT(switches_unseen(s, 60005001, 1000, &block, 1), ==, 1);
	stack->addresses[0] = 1;
	switches_stack(s, &block, stack);
	switches_in(s, 100, 0, 60005100);
	o.time_ns = 60006000;
	switches_out(s, &o);
	switches_in(s, 100, 0, 60006700);
	switches_close(s, 60007000);
	CHECK_INT(told.ns[0][1], ==, 100);
	CHECK_INT(told.not_seen_of[0], ==, 1000);
	free(stack);
	switches_free(s);
}

/* ---- Gaps ---- */

/* What a thread was blocked outside of the gap, and how far off one can be who did not look into
 * it: until its next switch behind. */
static void find_outside(uint32_t thread, uint64_t begin, uint64_t end, uint64_t *ret_ns,
			 uint64_t *ret_doubt)
{
	uint64_t since = 0;
	bool blocked = false, switched = false;

	*ret_ns = *ret_doubt = 0;
	for (uint32_t i = 0; i < schedule.n; i++) {
		const struct event *e = &schedule.events[i];
		uint64_t until = least(e->time_ns, schedule.end_ns);

		if (e->thread != thread && i + 1 < schedule.n)
			continue;
		if (e->thread != thread)
			until = schedule.end_ns;
		if (since && blocked && since < until)
			*ret_ns += until - since -
				   (since < end && until > begin
					    ? least(until, end) - (since > begin ? since : begin)
					    : 0);
		if (switched && since < end && until > end)
			*ret_doubt = until - end;
		switched = until >= begin && until < end;
		blocked = e->out && (e->state & 3);
		since = until;
		if (until == schedule.end_ns)
			return;
	}
}

static uint64_t replay_around(struct switches *s, uint64_t begin, uint64_t end)
{
	uint64_t first[N_THREADS] = {0}, all = 0;
	bool told = false;

	for (uint32_t i = 0; i < schedule.n && schedule.events[i].time_ns < schedule.end_ns; i++) {
		const struct event *e = &schedule.events[i];
		struct switch_out o = out_of(e);

		if (e->time_ns >= begin && e->time_ns < end)
			continue;
		if (e->time_ns >= end && !told)
			switches_gap(s, begin, end);
		told |= e->time_ns >= end;
		if (e->out)
			switches_out(s, &o);
		else
			switches_in(s, o.id, e->cpu, e->time_ns);
		if (!first[e->thread])
			first[e->thread] = e->time_ns;
	}
	if (!told)
		switches_gap(s, begin, end);
	switches_close(s, schedule.end_ns);
	for (uint32_t t = 0; t < N_THREADS; t++)
		all += first[t] ? schedule.end_ns - first[t] : 0;
	return all;
}

/* Whoever did not switch in it lost nothing but the time of the gap itself. */
static void test_gap(void)
{
	uint32_t n_exact = 0;

	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		uint64_t keep = seed, begin, end, all;
		struct told told;
		struct switches *s = fresh(&told);

		plan(&schedule, true);
		begin = schedule.end_ns / 3;
		end = begin + random_below(schedule.end_ns / 3);
		all = replay_around(s, begin, end);
		CHECK_INT(sum(switches_totals(s)), ==, all);
		CHECK_INT(switches_totals(s)->n_broken, ==, 0);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			uint64_t truth, doubt, is = told.not_seen_of[t];

			find_outside(t, begin, end, &truth, &doubt);
			CHECK_INT(is, <=, truth + doubt);
			CHECK_INT(truth, <=, is + doubt);
			n_exact += doubt == 0;
		}
		switches_free(s);
		seed = keep;
	}
	CHECK(n_exact > 100);
}

/* ---- What blocks wait for ---- */

enum { N_OBJECTS = 3 };

struct told_objects {
	uint64_t ns[N_OBJECTS], n[N_OBJECTS], single[N_OBJECTS]; /* single: the largest of n 1 */
	uint64_t running_ns, waiting_ns;
};

static void on_object(void *ctx, const struct switch_wait *w)
{
	struct told_objects *t = ctx;

	CHECK_INT(w->object, <, N_OBJECTS);
	t->ns[w->object] += w->ns;
	t->n[w->object] += w->n;
	if (w->n == 1 && w->ns > t->single[w->object])
		t->single[w->object] = w->ns;
}

static void on_other(void *ctx, const struct switch_other *other)
{
	struct told_objects *t = ctx;

	t->running_ns += other->running_ns;
	t->waiting_ns += other->waiting_ns;
}

/* One thread at one place: each object has its own blocks, and the longest is told apart. */
static void test_objects(void)
{
	const struct switches_callbacks all = {
		.tell = on_object, .tell_other = on_other, .longest_apart = true};
	const struct switches_limits limits = {.threads = 10, .keys = 10, .stack_bytes = 1 << 20};

	for (seed = 1; seed <= N_SCHEDULES; seed++) {
		uint64_t keep = seed, now = 1000, running = 0, waiting = 0;
		struct told_objects truth = {.running_ns = 0}, told = {.running_ns = 0};
		struct switch_out o = {
			.sp = 1, .ip = 2, .id = 5, .pid = 5, .tid = 5, .time_ns = now};
		struct switches *s = NULL;

		CHECK_INT(switches_new(&s, &limits, &all, &told), ==, 0);
		for (int i = 0; i < 50; i++) {
			uint64_t ns = 1 + random_below(20000000);

			o.how = random_below(4) ? SWITCH_BLOCKED : SWITCH_PREEMPTED;
			o.object = random_below(N_OBJECTS);
			o.time_ns = now;
			switches_out(s, &o);
			switches_in(s, o.id, 0, now + ns);
			if (o.how == SWITCH_BLOCKED) {
				truth.ns[o.object] += ns;
				truth.n[o.object]++;
				if (ns > truth.single[o.object])
					truth.single[o.object] = ns;
			} else {
				waiting += ns;
			}
			now += ns + 77;
			running += 77;
		}
		switches_close(s, now);
		for (uint32_t i = 0; i < N_OBJECTS; i++) {
			CHECK_INT(told.ns[i], ==, truth.ns[i]);
			CHECK_INT(told.n[i], ==, truth.n[i]);
			CHECK_INT(told.single[i], ==, truth.single[i]);
		}
		CHECK_INT(told.running_ns, ==, running);
		CHECK_INT(told.waiting_ns, ==, waiting);
		switches_free(s);
		seed = keep;
	}
}

/* ---- Notes ---- */

struct noted {
	uint64_t of_note[256], without_ns, empty_ns, n[256];
};

static void on_noted(void *ctx, const struct switch_wait *w)
{
	struct noted *t = ctx;

	if (w->n_note == 0) {
		*(w->noted ? &t->empty_ns : &t->without_ns) += w->ns;
		return;
	}
	CHECK(w->noted);
	CHECK_INT(w->n_note, ==, 2);
	CHECK_INT(w->note[0], ==, 0xee);
	t->of_note[w->note[1]] += w->ns;
	t->n[w->note[1]] += w->n;
}

/* What the sample or a late reader says of a block, with a stack or without one. */
static void note(struct switches *s, const struct event *out, uint64_t read_ns, uint8_t number,
		 bool late)
{
	const uint8_t bytes[] = {0xee, number};
	struct switch_out o = out_of(out);

	(late ? switches_note_late : switches_note)(s, &o, read_ns, bytes, sizeof(bytes));
}

/* Blocks of one thread, all in the same place: each has its own note if that was read while it
 * lasted, up to the end of each window, and no other block's. */
static void test_notes(void)
{
	static const struct switches_callbacks with_notes = {.tell = on_noted};
	const struct switches_limits limits = {
		.threads = 10, .keys = 10, .notes = 2, .stack_bytes = 1 << 20};

	for (uint64_t round = 0; round < 300; round++) {
		struct noted told = {.without_ns = 0}, truth = {.without_ns = 0};
		struct event e = {.time_ns = 1000, .state = 1, .out = true};
		struct switches *s = NULL;

		seed = round;
		CHECK_INT(switches_new(&s, &limits, &with_notes, &told), ==, 0);
		for (uint8_t i = 0; i < 100; i++) {
			uint64_t length = 20 + random_below(1000), read_ns, closed_ns = 0, known;
			bool before = random_below(2), late = random_below(2);
			bool is_read = random_below(4) > 0;
			struct switch_out o = out_of(&e);

			read_ns = e.time_ns + 1 + random_below(1500);
			if (!late && is_read && before)
				note(s, &e, read_ns, i, false);
			switches_out(s, &o);
			if (!late && is_read && !before)
				note(s, &e, read_ns, i, false);
			/* The answer is there by the next records. */
			if (late && is_read)
				note(s, &e, read_ns, i, true);
			if (random_below(3) == 0)
				sample(s, &e, 1);
			if (random_below(3) == 0) {
				closed_ns = e.time_ns + random_below(length);
				switches_close(s, closed_ns);
			}
			switches_in(s, o.id, 0, e.time_ns + length);
			/* A late answer about a block that is over. */
			if (late && !is_read)
				note(s, &e, read_ns, i, true);
			known = !is_read || read_ns >= e.time_ns + length ? 0
				: closed_ns && read_ns >= closed_ns ? e.time_ns + length - closed_ns
								    : length;
			truth.of_note[i] += known;
			truth.n[i] += known > 0;
			truth.without_ns += length - known;
			e.time_ns += length + 1 + random_below(50);
		}
		switches_close(s, e.time_ns);
		for (int i = 0; i < 100; i++) {
			CHECK_INT(told.of_note[i], ==, truth.of_note[i]);
			CHECK_INT(told.n[i], ==, truth.n[i]);
		}
		CHECK_INT(told.without_ns, ==, truth.without_ns);
		CHECK_INT(switches_totals(s)->n_refused, ==, 0);
		switches_free(s);
	}
}

/* After lost records, a gap or another switch without its end nobody knows that it is the block. */
static void test_doubted_notes(void)
{
	static const struct switches_callbacks with_notes = {.tell = on_noted};
	const struct switches_limits limits = {
		.threads = 10, .keys = 10, .notes = 1, .stack_bytes = 1 << 20};

	for (int how = 0; how < 4; how++) {
		struct noted told = {.without_ns = 0};
		struct event e = {.time_ns = 1000, .state = 1, .out = true};
		struct switch_out o = out_of(&e);
		struct switches *s = NULL;

		CHECK_INT(switches_new(&s, &limits, &with_notes, &told), ==, 0);
		switches_out(s, &o);
		note(s, &e, 1100, 7, false);
		if (how == 0)
			switches_lost(s, 0, 2000);
		if (how == 1)
			switches_gap(s, 1050, 2000);
		if (how == 2)
			switches_pause(s, 1090);
		if (how == 3) {
			o.time_ns = 2000;
			switches_out(s, &o);
		}
		switches_in(s, o.id, 0, 3000);
		CHECK_INT(told.of_note[7], ==, 0);
		/* Its place in the pool is free again. */
		e.time_ns = o.time_ns = 4000;
		switches_out(s, &o);
		note(s, &e, 4100, 8, false);
		switches_in(s, o.id, 0, 5000);
		CHECK_INT(told.of_note[8], ==, 1000);
		switches_free(s);
	}
}

/* A note that there is nothing to note: it takes no room, and the block is not offered again. */
static void test_empty_notes(void)
{
	static const struct switches_callbacks with_notes = {.tell = on_noted};
	const struct switches_limits limits = {
		.threads = 10, .keys = 10, .notes = 0, .stack_bytes = 1 << 20};
	struct noted told = {.without_ns = 0};
	struct event e = {.time_ns = 1000, .state = 1, .out = true};
	struct switch_out o = out_of(&e), ret[10];
	struct switches *s = NULL;

	CHECK_INT(switches_new(&s, &limits, &with_notes, &told), ==, 0);
	switches_out(s, &o);
	switches_note(s, &o, 1100, NULL, 0);
	CHECK_INT(switches_unnoted(s, 9000, 1000, ret, 10), ==, 0);
	switches_in(s, o.id, 0, 3000);
	CHECK_INT(told.empty_ns, ==, 2000);
	/* The next block of the same place is another one, also if it ended before it was read. */
	o.time_ns = 4000;
	switches_out(s, &o);
	CHECK_INT(switches_unnoted(s, 9000, 1000, ret, 10), ==, 1);
	switches_note_late(s, &o, 5100, NULL, 0);
	switches_in(s, o.id, 0, 5000);
	switches_close(s, 6000);
	CHECK_INT(told.empty_ns, ==, 2000);
	CHECK_INT(told.without_ns, ==, 1000);
	CHECK_INT(switches_totals(s)->n_refused, ==, 0);
	switches_free(s);
}

static bool takes_odd(void *ctx, const struct switch_out *block)
{
	return block->tid % 2 == 1;
}

static void test_unnoted(void)
{
	static const struct switches_callbacks with_notes = {.tell = on_noted,
							     .takes_note = takes_odd};
	const struct switches_limits limits = {
		.threads = 10, .keys = 10, .notes = 10, .stack_bytes = 1 << 20};
	struct noted told = {.without_ns = 0};
	struct switch_out ret[10];
	struct switches *s = NULL;
	struct event e = {.state = 1, .out = true};

	CHECK_INT(switches_new(&s, &limits, &with_notes, &told), ==, 0);
	for (uint32_t i = 0; i < 6; i++) {
		struct switch_out o;

		e.thread = i;
		e.time_ns = 1000 * (i + 1);
		o = out_of(&e);
		switches_out(s, &o);
	}
	/* Long enough, and its program tells something: 101, 103; not 105, which is too young. */
	CHECK_INT(switches_unnoted(s, 7000, 3000, ret, 10), ==, 2);
	CHECK_INT(ret[0].tid, ==, 101);
	CHECK_INT(ret[1].tid, ==, 103);
	e = (struct event){.thread = 1, .time_ns = 2000, .state = 1, .out = true};
	note(s, &e, 7100, 1, true);
	/* One that does not answer is asked again, ever later. */
	CHECK_INT(switches_unnoted(s, 8999, 3000, ret, 10), ==, 0);
	CHECK_INT(switches_unnoted(s, 10000, 3000, ret, 10), ==, 2);
	CHECK_INT(ret[0].tid, ==, 103);
	CHECK_INT(ret[1].tid, ==, 105);
	CHECK_INT(switches_unnoted(s, 11999, 3000, ret, 10), ==, 0);
	CHECK_INT(switches_unnoted(s, 12000, 3000, ret, 10), ==, 1);
	CHECK_INT(ret[0].tid, ==, 105);
	switches_free(s);
}

/* Whom a wake-up is for: known while the thread is blocked where a stack was seen. */
static void test_waits(void)
{
	struct switch_out o = {.time_ns = 1000,
			       .sp = 1,
			       .ip = 2,
			       .object = 64,
			       .id = 5,
			       .pid = 7,
			       .tid = 5,
			       .how = SWITCH_BLOCKED};
	const struct switch_stack stack = {.reason = 3};
	uint64_t object = 0;
	uint32_t pid = 0;
	struct told told;
	struct switches *s = fresh(&told);

	CHECK(!switches_waits(s, 5, &object, &pid));
	switches_out(s, &o);
	CHECK(!switches_waits(s, 5, &object, &pid));
	switches_stack(s, &o, &stack);
	CHECK(switches_waits(s, 5, &object, &pid));
	CHECK_INT(switches_waits(s, 5, &object, &pid)->reason, ==, 3);
	CHECK_INT(object, ==, 64);
	CHECK_INT(pid, ==, 7);
	switches_in(s, 5, 0, 2000);
	CHECK(!switches_waits(s, 5, &object, &pid));
	switches_free(s);
}

int main(void)
{
	RUN(test_states);
	RUN(test_carried_on);
	RUN(test_broken_pairs);
	RUN(test_ends);
	RUN(test_stands);
	RUN(test_found_runnable);
	RUN(test_followed);
	RUN(test_whole_life);
	RUN(test_wanted);
	RUN(test_wanted_later);
	RUN(test_well_known);
	RUN(test_enough);
	RUN(test_known);
	RUN(test_unknown_at_once);
	RUN(test_verified_as_often);
	RUN(test_grants);
	RUN(test_pause);
	RUN(test_limits);
	RUN(test_exact);
	RUN(test_all_of_a_key);
	RUN(test_split);
	RUN(test_losses);
	RUN(test_gap);
	RUN(test_late);
	RUN(test_unread);
	RUN(test_unusual);
	RUN(test_varies);
	RUN(test_again);
	RUN(test_anywhere);
	RUN(test_objects);
	RUN(test_waits);
	RUN(test_notes);
	RUN(test_doubted_notes);
	RUN(test_empty_notes);
	RUN(test_unnoted);
	return 0;
}
