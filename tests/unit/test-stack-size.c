/* SPDX-License-Identifier: Apache-2.0 */
/* The size of the stack copies against loads of known depth. */
#include "src/sample/stack-size.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { RING = 2 << 20, RATE = 19, NEVER = 1 << 30 };

struct load {
	uint32_t deep_bytes, deep_percent; /* NEVER: no copy is enough */
};

static uint64_t now_ns = NSEC_PER_SEC;

/* Periods of that load; how many changes there were. */
static unsigned int run(struct stack_size *s, struct load load, unsigned int periods)
{
	unsigned int changes = 0;

	for (unsigned int i = 0; i < periods; i++) {
		uint32_t wanted = 0;

		for (unsigned int k = 0; k < 400 && !wanted; k++) {
			uint32_t depth = k % 100 < load.deep_percent ? load.deep_bytes : 3000;
			bool cut = depth > s->bytes;

			stack_size_count(s, s->bytes, cut ? s->bytes : depth, cut);
			now_ns += 5 * NSEC_PER_MSEC;
			wanted = stack_size_decide(s, now_ns);
		}
		if (wanted) {
			CHECK_INT(stack_size_decide(s, now_ns + 100 * NSEC_PER_SEC), ==, 0);
			stack_size_set(s, wanted);
			changes++;
		}
	}
	return changes;
}

static struct stack_size fresh(uint64_t ring_bytes, uint32_t rate_hz)
{
	struct stack_size s;

	stack_size_init(&s, STACK_SIZE_FIRST, ring_bytes, rate_hz);
	return s;
}

static void test_stays(void)
{
	struct stack_size s = fresh(RING, RATE);

	CHECK_INT(run(&s, (struct load){3000, 100}, 1000), ==, 0);
	/* One in a hundred does not pay for all. */
	CHECK_INT(run(&s, (struct load){20000, 1}, 1000), ==, 0);
	CHECK_INT(s.bytes, ==, 16384);
}

static void test_grows_and_shrinks(void)
{
	struct stack_size s = fresh(RING, RATE);

	CHECK_INT(run(&s, (struct load){20000, 10}, 50), ==, 1);
	CHECK_INT(s.bytes, ==, 32768);
	CHECK_INT(run(&s, (struct load){40000, 10}, 50), ==, 1);
	CHECK_INT(s.bytes, ==, 65528);
	CHECK_INT(run(&s, (struct load){3000, 0}, 100), ==, 2);
	CHECK_INT(s.bytes, ==, 16384);
}

/* A size that saves nothing is no reason not to try the next. */
static void test_pays_late(void)
{
	struct stack_size s = fresh(RING, RATE);

	CHECK_INT(run(&s, (struct load){40000, 100}, 50), ==, 2);
	CHECK_INT(s.bytes, ==, 65528);
}

/* All are tried once. When half as many more are cut they are tried again. */
static void test_does_not_pay(void)
{
	struct stack_size s = fresh(RING, RATE);

	CHECK_INT(run(&s, (struct load){NEVER, 10}, 2000), ==, 3);
	CHECK_INT(s.bytes, ==, 16384);
	CHECK_INT(run(&s, (struct load){20000, 30}, 10), ==, 1);
	CHECK_INT(s.bytes, ==, 32768);
}

/* A load that comes and goes: ever fewer changes. */
static void test_bounded(void)
{
	struct stack_size s = fresh(RING, RATE);
	unsigned int changes = 0, late = 0;

	for (unsigned int i = 0; i < 500; i++) {
		unsigned int n = run(&s, (struct load){20000, 10}, 10);

		n += run(&s, (struct load){3000, 0}, 10);
		changes += n;
		late += i >= 250 ? n : 0;
	}
	CHECK_INT(changes, <=, 12);
	CHECK_INT(late, ==, 0);
	CHECK_INT(s.bytes, ==, 32768);
}

static void test_ring(void)
{
	struct stack_size s = fresh(RING, 199);

	CHECK_INT(stack_size_max(RING, 19), ==, 65528);
	CHECK_INT(stack_size_max(RING, 99), ==, 65528);
	CHECK_INT(stack_size_max(RING, 199), ==, 32768);
	CHECK_INT(stack_size_max(RING, 1000), ==, 16384);
	CHECK_INT(stack_size_max(128 << 10, 1000), ==, 8192);
	run(&s, (struct load){20000, 50}, 20);
	run(&s, (struct load){40000, 50}, 20);
	CHECK_INT(s.bytes, ==, 32768);
}

/* Samples of another size are not counted; a refused change is not a trial. */
static void test_change(void)
{
	struct stack_size s = fresh(RING, RATE);

	for (int i = 0; i < 1000; i++)
		stack_size_count(&s, 32768, 20000, false);
	CHECK_INT(s.n, ==, 0);
	s.bytes = 65528;
	stack_size_count(&s, 65504, 20000, false); /* a record holds no more */
	CHECK_INT(s.n, ==, 1);
	s = fresh(RING, RATE);
	for (int i = 0; i < 300; i++)
		stack_size_count(&s, 16384, 16384, true);
	CHECK_INT(stack_size_decide(&s, now_ns), ==, 0);
	CHECK_INT(stack_size_decide(&s, now_ns + 2 * NSEC_PER_SEC), ==, 32768);
	stack_size_set(&s, 16384);
	CHECK_INT(s.trial_from, ==, 0);
}

int main(void)
{
	RUN(test_stays);
	RUN(test_grows_and_shrinks);
	RUN(test_pays_late);
	RUN(test_does_not_pay);
	RUN(test_bounded);
	RUN(test_ring);
	RUN(test_change);
	return 0;
}
