/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing between windows, against the plain sum of what was sent and what came. */
#include "src/symbolizer/arrivals.h"
#include "tests/unit/test.h"

static struct message window(uint64_t begin, uint64_t end, uint64_t n_dropped)
{
	struct message m = {.type = MESSAGE_WINDOW};

	m.window.begin.events[0].samples = begin;
	m.window.end.events[0].samples = end;
	m.window.n_dropped[0] = n_dropped;
	return m;
}

static void take(struct arrivals *a, uint64_t begin, uint64_t end, uint64_t n_dropped, bool news,
		 uint64_t dropped, uint64_t died)
{
	const struct message m = window(begin, end, n_dropped);
	struct arrivals_gap gaps[STATUS_MAX_EVENTS];

	CHECK(arrivals_window(a, &m, gaps) == news);
	CHECK_INT(gaps[0].samples, ==, dropped + died);
	CHECK_INT(gaps[0].dropped, ==, dropped);
	CHECK_INT(gaps[0].died, ==, died);
}

static void test_one_after_the_other(void)
{
	struct arrivals a = {.n_dropped = {0}};

	take(&a, 0, 10, 0, true, 0, 0);
	take(&a, 10, 10, 0, true, 0, 0); /* empty */
	take(&a, 10, 25, 0, true, 0, 0);
}

static void test_profiler_dies(void)
{
	struct arrivals a = {.n_dropped = {0}};

	take(&a, 0, 10, 0, true, 0, 0);
	arrivals_new_profiler(&a);
	take(&a, 17, 20, 0, true, 0, 7);
	take(&a, 20, 30, 0, true, 0, 0);
}

/* A window that was given up is known from one that died, also where both happen. */
static void test_given_up(void)
{
	struct arrivals a = {.n_dropped = {0}};

	take(&a, 0, 10, 0, true, 0, 0);
	take(&a, 15, 20, 5, true, 5, 0);
	take(&a, 20, 30, 5, true, 0, 0);
	arrivals_new_profiler(&a);
	take(&a, 42, 50, 3, true, 3, 9);
}

/* Given up after it was sent: it came, and nothing is missing. */
static void test_given_up_but_sent(void)
{
	struct arrivals a = {.n_dropped = {0}};

	take(&a, 0, 10, 0, true, 0, 0);
	take(&a, 10, 20, 10, true, 0, 0);
}

/* The one before died after it had settled them, and before it said so. */
static void test_came_before(void)
{
	struct arrivals a = {.expected = {.events = {{.samples = 30}}}};

	take(&a, 10, 20, 0, false, 0, 0);
	take(&a, 20, 30, 0, false, 0, 0);
	take(&a, 30, 30, 0, true, 0, 0);
	take(&a, 30, 35, 0, true, 0, 0);
}

static void check_gap(const struct arrivals_gap *g, uint64_t samples, uint64_t filtered,
		      uint64_t lost, uint64_t died)
{
	CHECK_INT(g->samples, ==, samples);
	CHECK_INT(g->filtered, ==, filtered);
	CHECK_INT(g->lost, ==, lost);
	CHECK_INT(g->died, ==, died);
	CHECK_INT(g->dropped, ==, 0);
}

/* Each event has numbers of its own. */
static void test_all_numbers(void)
{
	struct arrivals a = {.n_dropped = {0}};
	const struct sample_place end = {.events = {{70, 15, 9}, {8, 0, 0}}};
	struct message m = window(20, 40, 0);
	struct arrivals_gap gaps[STATUS_MAX_EVENTS];

	m.window.begin.events[0] = (struct place_of_event){20, 8, 3};
	m.window.end.events[0] = (struct place_of_event){40, 10, 3};
	m.window.end.events[1] = m.window.begin.events[1] = (struct place_of_event){5, 0, 0};
	CHECK(arrivals_window(&a, &m, gaps));
	check_gap(&gaps[0], 20, 8, 3, 12);
	check_gap(&gaps[1], 5, 0, 0, 5);
	check_gap(&gaps[STATUS_MAX_EVENTS - 1], 0, 0, 0, 0);
	/* At the end, once. */
	arrivals_end(&a, &end, gaps);
	check_gap(&gaps[0], 30, 5, 6, 25);
	check_gap(&gaps[1], 3, 0, 0, 3);
	arrivals_end(&a, &end, gaps);
	check_gap(&gaps[0], 0, 0, 0, 0);
	check_gap(&gaps[1], 0, 0, 0, 0);
}

/* Numbers that contradict themselves make no number of losses that wraps. */
static void test_nonsense(void)
{
	struct arrivals a = {.expected = {.events = {{100, 50, 9}}}};
	struct message m = window(90, 200, 0);
	struct arrivals_gap gaps[STATUS_MAX_EVENTS];

	CHECK(arrivals_window(&a, &m, gaps));
	check_gap(&gaps[0], 0, 0, 0, 0);
	m = window(210, 220, 0);
	m.window.begin.events[0].filtered = 500;
	CHECK(arrivals_window(&a, &m, gaps));
	CHECK_INT(gaps[0].died + gaps[0].dropped, ==, 0);
}

int main(void)
{
	RUN(test_one_after_the_other);
	RUN(test_profiler_dies);
	RUN(test_given_up);
	RUN(test_given_up_but_sent);
	RUN(test_came_before);
	RUN(test_all_numbers);
	RUN(test_nonsense);
	return 0;
}
