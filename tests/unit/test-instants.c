/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a CPU is sampled next, held against models: a timer as the kernel's, which repeats what was
 * set, and CPUs on which threads A, B and C run. The seed is fixed, so each run is the same.
 */
#include <math.h>

#include "src/reader/instants.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"

#define PERIOD	     UINT64_C(2000000)
#define BEGIN	     UINT64_C(1000000000)
#define N_BLOCKS     500
#define FIRST_BLOCKS 10
#define LENGTH	     (N_BLOCKS * INSTANTS_BLOCK * PERIOD)
#define TICK	     UINT64_C(4000000)

enum { IDLE, A, B, C, N_THREADS };

struct model {
	struct instants instants;
	bool fixed;	       /* nobody sets the period */
	uint64_t reader_ns;    /* how long it runs for a sample */
	uint64_t period, next; /* of the timer */
	uint64_t since_ns;     /* the reader sleeps since then */
	bool own_time;	       /* what is told of the time has nothing to do with the timer's */
	bool late_for_c;       /* thread C is in front of the reader */
	uint32_t n[N_THREADS], n_set;
	uint64_t ran_ns[N_THREADS];
	uint32_t n_waiting;  /* samples that no reader has seen */
	uint32_t n_long[5];  /* intervals of so many periods and more */
	uint32_t at_tick[8]; /* samples by their time since a tick */
};

/* Who runs at that time, and until when. */
typedef uint32_t (*runs_fn)(const struct model *m, uint64_t t, uint64_t *ret_until);

static void run_until(struct model *m, runs_fn runs, uint64_t *t, uint64_t end)
{
	uint64_t until;

	while (*t < end) {
		uint32_t who = runs(m, *t, &until);

		until = until < end ? until : end;
		m->ran_ns[who] += until - *t;
		*t = until;
	}
}

static void count(struct model *m, uint32_t who, uint64_t t, uint64_t since_last)
{
	m->n[who]++;
	m->at_tick[t % TICK * 8 / TICK]++;
	for (uint32_t i = 0; i < 5; i++)
		m->n_long[i] += since_last >= i * PERIOD;
}

/* Of who at t; then the reader runs. */
static void sample(struct model *m, uint32_t who, uint64_t *t)
{
	struct instants_sample newest = {.time_ns = *t, .seen_ns = *t, .tid = who};
	uint64_t set;

	m->next += m->period;
	m->n_waiting++;
	if (m->late_for_c && who == C)
		return;
	newest.n = m->n_waiting;
	m->n_waiting = 0;
	*t += m->reader_ns;
	m->since_ns = *t;
	if (m->own_time)
		newest.time_ns = newest.seen_ns = 7 * *t;
	set = m->fixed ? 0 : instants_next(&m->instants, &newest, m->own_time ? 7 * *t : *t);
	if (!set)
		return;
	CHECK_INT(set, >=, PERIOD / SAMPLE_TIMER_PART);
	m->n_set++;
	m->period = set;
	m->next = *t + set;
}

static void run_for(struct model *m, runs_fn runs, uint64_t *t, uint64_t ns)
{
	uint64_t end = m->next + ns, last = *t, until;

	while (m->next < end) {
		uint32_t who;

		run_until(m, runs, t, m->next);
		who = runs(m, *t, &until);
		if (who == IDLE) {
			m->next += m->period;
			continue;
		}
		count(m, who, *t, *t - last);
		last = *t;
		sample(m, who, t);
	}
}

/* The first blocks find out that the CPU is shared. */
static void run(struct model *m, runs_fn runs)
{
	uint64_t t = BEGIN;
	struct model counts = *m;

	instants_init(&m->instants, PERIOD, m->own_time, 1);
	m->since_ns = t;
	m->period = PERIOD;
	m->next = t + PERIOD;
	run_for(m, runs, &t, FIRST_BLOCKS * INSTANTS_BLOCK * PERIOD);
	memcpy(m->n, counts.n, sizeof(m->n));
	memcpy(m->ran_ns, counts.ran_ns, sizeof(m->ran_ns));
	memcpy(m->n_long, counts.n_long, sizeof(m->n_long));
	memcpy(m->at_tick, counts.at_tick, sizeof(m->at_tick));
	m->n_set = 0;
	run_for(m, runs, &t, LENGTH);
}

/* Of that thread's time. */
static double ratio(const struct model *m, uint32_t who)
{
	return (double)(m->n[who] * PERIOD) / (double)m->ran_ns[who];
}

static bool is_near(double value, double want, double off)
{
	if (fabs(value - want) <= off)
		return true;
	printf("# %.4f, not %.4f within %.4f\n", value, want, off);
	return false;
}

/* A is all there is. */
static uint32_t one_runs(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	(void)m;
	*ret_until = t + PERIOD;
	return A;
}

/* A third of a millisecond each, whatever is sampled. */
static uint32_t two_run(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	const uint64_t slice = 317003;

	(void)m;
	*ret_until = (t / slice + 1) * slice;
	return t / slice % 2 ? A : B;
}

static void test_one_thread(void)
{
	struct model m = {.reader_ns = 20000};

	run(&m, one_runs);
	/* A block in eight looks for others, in which the reader's time is left out. */
	CHECK_INT(m.n_set, >, N_BLOCKS * INSTANTS_BLOCK / 9);
	CHECK_INT(m.n_set, <, N_BLOCKS * INSTANTS_BLOCK / 7);
	CHECK(is_near(ratio(&m, A) * (double)m.ran_ns[A] / LENGTH, 1 - 0.01 / 8, 0.001));
}

static void test_distribution(void)
{
	const double n = N_BLOCKS * INSTANTS_BLOCK;
	struct model m = {0};

	run(&m, two_run);
	/* Each block has 64, but for instants so near to the one before that they become one. */
	CHECK(is_near((m.n[A] + m.n[B]) / n, 1, 0.004));
	CHECK_INT(m.n_set, >, 0.95 * n);
	/* Instants anywhere in 64 periods are apart by t or more as often as (1 - t / 64)^63. */
	for (uint32_t i = 1; i < 5; i++)
		CHECK(is_near(m.n_long[i] / n, pow(1 - i / 64., 63), 0.01));
	/* And at any time between two ticks. */
	for (uint32_t i = 0; i < 8; i++)
		CHECK(is_near(m.at_tick[i] / n, 1 / 8., 0.01));
}

/* The kernel chooses anew when the reader sleeps: B, and A when B has used up its slice. */
static uint32_t chosen_anew(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	const uint64_t slice = 1500000, n = (t - m->since_ns) / slice;

	*ret_until = m->since_ns + (n + 1) * slice;
	return n % 2 ? A : B;
}

static void test_choice_by_samples(void)
{
	struct model fixed = {.fixed = true, .reader_ns = 30000}, m = {.reader_ns = 30000};

	run(&fixed, chosen_anew);
	run(&fixed, chosen_anew);
	CHECK(ratio(&fixed, B) < 0.1);
	run(&m, chosen_anew);
	CHECK(is_near(ratio(&m, A), 1, 0.03));
	CHECK(is_near(ratio(&m, B), 1, 0.03));
	/* The reader's own time is nobody's. */
	CHECK(is_near((ratio(&m, A) * (double)m.ran_ns[A] + ratio(&m, B) * (double)m.ran_ns[B]) /
			      (double)(m.ran_ns[A] + m.ran_ns[B]),
		      1, 0.004));
}

static void test_own_time(void)
{
	struct model m = {.own_time = true};

	run(&m, chosen_anew);
	CHECK(is_near(ratio(&m, A), 1, 0.03));
	CHECK(is_near(ratio(&m, B), 1, 0.03));
	CHECK(is_near((double)(m.n[A] + m.n[B]) / (N_BLOCKS * INSTANTS_BLOCK), 1, 0.004));
	CHECK_INT(instants_hold(&m.instants, BEGIN), ==, 0);
}

/* Random as a time, without a state. */
static double at_random(uint64_t n)
{
	n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)(n >> 11) * 0x1p-53;
}

/* A alone, but for one period of B in each forty. */
static uint32_t seldom_b(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	const uint64_t turn = 40 * PERIOD, n = t / turn;
	const uint64_t b = n * turn + (uint64_t)(at_random(n) * 38 * PERIOD);

	(void)m;
	*ret_until = t < b ? b : t < b + PERIOD ? b + PERIOD : (n + 1) * turn;
	return t >= b && t < b + PERIOD ? B : A;
}

/* The CPU is busy and idle for some periods each, and A and B take turns. */
static uint32_t with_pauses(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	const uint64_t turn = 20 * PERIOD, n = t / turn;
	const uint64_t busy = (uint64_t)((18 + 1.9 * at_random(n)) * PERIOD);

	if (t - n * turn >= busy) {
		*ret_until = (n + 1) * turn;
		return IDLE;
	}
	return two_run(m, t, ret_until);
}

/* Thread C is in front of the reader for ten periods at a time. */
static uint32_t with_one_in_front(const struct model *m, uint64_t t, uint64_t *ret_until)
{
	const uint64_t turn = 30 * PERIOD, n = t / turn;
	const uint64_t c = n * turn + (uint64_t)(at_random(n) * 20 * PERIOD);

	if (t >= c && t < c + 10 * PERIOD) {
		*ret_until = c + 10 * PERIOD;
		return C;
	}
	return two_run(m, t, ret_until);
}

static void test_other_threads(void)
{
	static const struct {
		const char *name;
		runs_fn runs;
		double off;
	} cases[] = {
		{"seldom", seldom_b, 0.05},
		{"pauses", with_pauses, 0.01},
		{"in front", with_one_in_front, 0.03},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct model m = {.late_for_c = true};

		run(&m, cases[i].runs);
		for (uint32_t who = A; who < N_THREADS; who++) {
			if (!m.ran_ns[who])
				continue;
			printf("# %s: thread %u: %.4f of %.2f\n", cases[i].name, who,
			       ratio(&m, who), (double)m.ran_ns[who] / LENGTH);
			CHECK(is_near(ratio(&m, who), 1, cases[i].off));
		}
		CHECK_INT(m.n_set, >, 1);
	}
}

int main(void)
{
	RUN(test_one_thread);
	RUN(test_distribution);
	RUN(test_choice_by_samples);
	RUN(test_own_time);
	RUN(test_other_threads);
	return 0;
}
