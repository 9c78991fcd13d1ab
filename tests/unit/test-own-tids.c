/* SPDX-License-Identifier: Apache-2.0 */
/* When the broker is asked for a thread's own number, and what is believed until it answers. */
#include "src/reader/own-tids.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define START_NS (UINT64_C(5) * NSEC_PER_SEC)

static struct own_tids table;
static uint32_t n_asked, last_asked;

static void on_ask(void *ctx, uint32_t tid)
{
	CHECK(ctx == &n_asked);
	n_asked++;
	last_asked = tid;
}

static void begin(void)
{
	table = (struct own_tids){.ask = on_ask, .ctx = &n_asked};
	n_asked = last_asked = 0;
}

static uint32_t number_of(uint32_t tid, uint64_t now_ns)
{
	return own_tids_find(&table, tid, now_ns).number;
}

static void put(uint32_t tid, uint32_t number)
{
	own_tids_put(&table, tid, &(struct own_thread){number, true, 0xabc});
}

/* It is asked once, and again only if no answer comes for a while. */
static void test_asked_once(void)
{
	struct own_thread thread;

	begin();
	CHECK_INT(number_of(100, START_NS), ==, 0);
	CHECK_INT(last_asked, ==, 100);
	for (uint64_t ms = 1; ms < 100; ms++)
		CHECK_INT(number_of(100, START_NS + ms * NSEC_PER_MSEC), ==, 0);
	CHECK_INT(n_asked, ==, 1);
	CHECK_INT(number_of(100, START_NS + 100 * NSEC_PER_MSEC), ==, 0);
	CHECK_INT(n_asked, ==, 2);
	put(100, 7);
	thread = own_tids_find(&table, 100, START_NS + NSEC_PER_SEC);
	CHECK_INT(thread.number, ==, 7);
	CHECK_INT(thread.robust_list, ==, 0xabc);
	CHECK(thread.in_front);
	CHECK_INT(n_asked, ==, 2);
}

/* After so many uses the number may be another thread's; the old one counts until the answer. */
static void test_asked_again(void)
{
	uint64_t now = START_NS;

	begin();
	(void)number_of(100, now);
	put(100, 7);
	for (int i = 0; i < OWN_TIDS_FIRST_USES; i++)
		CHECK_INT(number_of(100, now += NSEC_PER_MSEC), ==, 7);
	CHECK_INT(n_asked, ==, 1);
	/* Soon, because it may have another priority. */
	CHECK_INT(number_of(100, now += 100 * NSEC_PER_MSEC), ==, 7);
	CHECK_INT(n_asked, ==, 2);
	put(100, 8);
	for (int i = 0; i < OWN_TIDS_USES; i++)
		CHECK_INT(number_of(100, now += NSEC_PER_MSEC), ==, 8);
	CHECK_INT(n_asked, ==, 2);
	CHECK_INT(number_of(100, now), ==, 8);
	CHECK_INT(n_asked, ==, 3);
	/* It is gone: asked again, as one that is not known. */
	put(100, 0);
	CHECK_INT(number_of(100, now + NSEC_PER_SEC), ==, 0);
	CHECK_INT(n_asked, ==, 4);
}

/* Two in one place: the newer one has it, and an answer for the other is not taken for its own. */
static void test_one_place(void)
{
	begin();
	(void)number_of(100, START_NS);
	CHECK_INT(number_of(100 + OWN_TIDS, START_NS), ==, 0);
	CHECK_INT(n_asked, ==, 2);
	put(100, 7);
	CHECK_INT(number_of(100 + OWN_TIDS, START_NS), ==, 0);
	put(100 + OWN_TIDS, 8);
	CHECK_INT(number_of(100 + OWN_TIDS, START_NS), ==, 8);
	CHECK_INT(number_of(100, START_NS), ==, 0);
	CHECK_INT(last_asked, ==, 100);
}

int main(void)
{
	RUN(test_asked_once);
	RUN(test_asked_again);
	RUN(test_one_place);
	return 0;
}
