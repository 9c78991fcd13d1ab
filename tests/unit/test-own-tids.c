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

/* It is asked once, and again only if no answer comes for a while. */
static void test_asked_once(void)
{
	uint64_t list = 1;

	begin();
	CHECK_INT(own_tids_find(&table, 100, START_NS, &list), ==, 0);
	CHECK_INT(list, ==, 0);
	CHECK_INT(last_asked, ==, 100);
	for (uint64_t ms = 1; ms < 100; ms++)
		CHECK_INT(own_tids_find(&table, 100, START_NS + ms * NSEC_PER_MSEC, NULL), ==, 0);
	CHECK_INT(n_asked, ==, 1);
	CHECK_INT(own_tids_find(&table, 100, START_NS + 100 * NSEC_PER_MSEC, NULL), ==, 0);
	CHECK_INT(n_asked, ==, 2);
	own_tids_put(&table, 100, 7, 0xabc);
	CHECK_INT(own_tids_find(&table, 100, START_NS + NSEC_PER_SEC, &list), ==, 7);
	CHECK_INT(list, ==, 0xabc);
	CHECK_INT(n_asked, ==, 2);
}

/* After so many uses the number may be another thread's; the old one counts until the answer. */
static void test_asked_again(void)
{
	uint64_t now = START_NS;

	begin();
	(void)own_tids_find(&table, 100, now, NULL);
	own_tids_put(&table, 100, 7, 0);
	for (int i = 0; i < OWN_TIDS_USES; i++)
		CHECK_INT(own_tids_find(&table, 100, now += NSEC_PER_MSEC, NULL), ==, 7);
	CHECK_INT(n_asked, ==, 1);
	CHECK_INT(own_tids_find(&table, 100, now, NULL), ==, 7);
	CHECK_INT(n_asked, ==, 2);
	/* It is gone: asked again, as one that is not known. */
	own_tids_put(&table, 100, 0, 0);
	CHECK_INT(own_tids_find(&table, 100, now + NSEC_PER_SEC, NULL), ==, 0);
	CHECK_INT(n_asked, ==, 3);
}

/* Two in one place: the newer one has it, and an answer for the other is not taken for its own. */
static void test_one_place(void)
{
	begin();
	(void)own_tids_find(&table, 100, START_NS, NULL);
	CHECK_INT(own_tids_find(&table, 100 + OWN_TIDS, START_NS, NULL), ==, 0);
	CHECK_INT(n_asked, ==, 2);
	own_tids_put(&table, 100, 7, 1);
	CHECK_INT(own_tids_find(&table, 100 + OWN_TIDS, START_NS, NULL), ==, 0);
	own_tids_put(&table, 100 + OWN_TIDS, 8, 2);
	CHECK_INT(own_tids_find(&table, 100 + OWN_TIDS, START_NS, NULL), ==, 8);
	CHECK_INT(own_tids_find(&table, 100, START_NS, NULL), ==, 0);
	CHECK_INT(last_asked, ==, 100);
}

int main(void)
{
	RUN(test_asked_once);
	RUN(test_asked_again);
	RUN(test_one_place);
	return 0;
}
