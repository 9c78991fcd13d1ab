/* SPDX-License-Identifier: Apache-2.0 */
/* When the broker is asked for a thread's own number, and what is believed until it answers. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/reader/own-tids.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define START_NS (UINT64_C(5) * NSEC_PER_SEC)

static struct own_tids table;
static uint32_t n_asked, last_asked;
static bool asked_stat;

static void on_ask(void *ctx, uint32_t tid, bool with_stat)
{
	CHECK(ctx == &n_asked);
	asked_stat = with_stat;
	n_asked++;
	last_asked = tid;
}

static void begin(void)
{
	own_tids_init(&table, on_ask, &n_asked);
	n_asked = last_asked = 0;
}

static uint32_t number_of(uint32_t tid, uint64_t now_ns)
{
	return own_tids_find(&table, tid, false, now_ns).number;
}

static void put(uint32_t tid, uint32_t number)
{
	own_tids_put(&table, tid, &(struct own_thread){number, true, 0xabc, -EBADF});
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
	thread = own_tids_find(&table, 100, false, START_NS + NSEC_PER_SEC);
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

/* The stat files of so many threads are open, and each is closed once. */
static void test_stats(void)
{
	struct own_thread thread = {.number = 7};
	uint32_t n_open = 0;

	begin();
	(void)number_of(100, START_NS);
	CHECK(!asked_stat);
	put(100, 7);
	CHECK_INT(own_tids_find(&table, 100, true, START_NS + NSEC_PER_SEC).stat, <, 0);
	CHECK(asked_stat);
	CHECK_INT(n_asked, ==, 2);
	for (uint32_t tid = 100; tid < 100 + 2 * OWN_TIDS_STATS; tid++) {
		(void)own_tids_find(&table, tid, true, START_NS + 2 * NSEC_PER_SEC);
		thread.stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		CHECK_INT(thread.stat, >=, 0);
		own_tids_put(&table, tid, &thread);
		CHECK_INT(own_tids_find(&table, tid, true, START_NS).stat, ==, thread.stat);
	}
	CHECK_INT(table.n_stats, ==, OWN_TIDS_STATS);
	for (uint32_t i = 0; i < OWN_TIDS; i++) {
		int fd = table.items[i].thread.stat;

		n_open += fd >= 0;
		CHECK(fd < 0 || fcntl(fd, F_GETFD) >= 0);
	}
	CHECK_INT(n_open, ==, OWN_TIDS_STATS);
	/* An answer that nobody waits for. */
	thread.stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	own_tids_put(&table, 5, &thread);
	CHECK_INT(fcntl(thread.stat, F_GETFD), <, 0);
	own_tids_deinit(&table);
	CHECK_INT(table.n_stats, ==, 0);
}

/* For a minute, and of that thread alone. */
static void test_left(void)
{
	begin();
	(void)number_of(100, START_NS);
	CHECK(!own_tids_leaves(&table, 100, START_NS));
	own_tids_note_left(&table, 100, START_NS);
	put(100, 7);
	CHECK(own_tids_leaves(&table, 100, START_NS + 60 * NSEC_PER_SEC - 1));
	CHECK(!own_tids_leaves(&table, 100, START_NS + 60 * NSEC_PER_SEC));
	(void)number_of(100 + OWN_TIDS, START_NS);
	CHECK(!own_tids_leaves(&table, 100, START_NS));
	CHECK(!own_tids_leaves(&table, 100 + OWN_TIDS, START_NS));
}

int main(void)
{
	RUN(test_asked_once);
	RUN(test_asked_again);
	RUN(test_one_place);
	RUN(test_stats);
	RUN(test_left);
	return 0;
}
