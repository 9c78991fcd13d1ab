/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: whoever stops writing at whatever moment, the slot with the ring's tail holds. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/sample/sample.h"
#include "tests/unit/test.h"

#define MAX_CPU 4095

static void check_adopted(struct ledger_entry *e, uint64_t id, uint64_t tail, uint64_t samples,
			  uint64_t lost_reported)
{
	struct ledger_slot s;

	ledger_adopt(e, id, tail, &s);
	CHECK_INT(s.tail, ==, tail);
	CHECK_INT(s.tally.samples, ==, samples);
	CHECK_INT(s.lost_reported, ==, lost_reported);
}

/* The reader dies before it moves the tail, or behind. */
static void test_either_tail(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL;
	_cleanup_close_ int fd = ledger_new(&l);
	struct ledger_entry *e;
	struct ledger_slot s;

	CHECK_INT(fd, >=, 0);
	e = ledger_entry(l, 0, 3);
	ledger_adopt(e, 77, 0, &s);
	for (uint64_t i = 1; i <= 100; i++) {
		struct ledger_entry copy;

		s.tail = i * 48;
		s.tally.samples = i;
		s.lost_reported = 2 * i;
		ledger_write(e, &s);
		copy = *e;
		check_adopted(&copy, 77, (i - 1) * 48, i - 1, 2 * (i - 1));
		copy = *e;
		check_adopted(&copy, 77, i * 48, i, 2 * i);
		/* And the next one after it, which may die at once as well. */
		check_adopted(&copy, 77, i * 48, i, 2 * i);
	}
}

/* A slot that was begun and not finished is no slot. */
static void test_half_written(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL;
	_cleanup_close_ int fd = ledger_new(&l);
	struct ledger_entry *e = ledger_entry(l, 0, 0);
	struct ledger_slot s;

	CHECK_INT(fd, >=, 0);
	ledger_adopt(e, 5, 0, &s);
	s.tail = 8;
	s.tally.samples = 1;
	ledger_write(e, &s);
	/* As ledger_write() begins. */
	e->slots[(s.turn + 1) & 1].tail = UINT64_MAX;
	e->slots[(s.turn + 1) & 1].turn = s.turn + 1;
	e->slots[(s.turn + 1) & 1].tally.samples = 1000;
	CHECK_INT(ledger_sum(l, 0).samples, ==, 1);
	check_adopted(e, 5, 8, 1, 0);
	CHECK_INT(ledger_sum(l, 0).samples, ==, 1);
}

/* A CPU that comes back has new rings: what was read of the old ones is not forgotten. */
static void test_other_ring(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL;
	_cleanup_close_ int fd = ledger_new(&l);
	struct ledger_entry *e = ledger_entry(l, 1, MAX_CPU);
	struct ledger_slot s;

	CHECK_INT(fd, >=, 0);
	ledger_adopt(e, 5, 0, &s);
	s = (struct ledger_slot){
		.turn = s.turn, .tail = 800, .tally = {20, 5, 3}, .lost_reported = 3};
	ledger_write(e, &s);
	check_adopted(e, 6, 0, 20, 0);
	check_adopted(e, 6, 0, 20, 0);
	/* Kernels that do not say which ring it is: by its tail. */
	check_adopted(e, 0, 16, 20, 0);
	CHECK_INT(ledger_sum(l, 1).samples, ==, 20);
	CHECK_INT(ledger_sum(l, 1).filtered, ==, 5);
	CHECK_INT(ledger_sum(l, 1).lost, ==, 3);
	CHECK_INT(ledger_sum(l, 0).samples, ==, 0);
}

/* Of an event on all CPUs. */
static void test_sum(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL, *other = NULL;
	_cleanup_close_ int fd = ledger_new(&l);
	uint64_t sums[SAMPLE_MAX_EVENTS + 1] = {0};

	for (int cpu = 0; cpu <= MAX_CPU; cpu += 819) {
		for (uint32_t i = 0; i <= SAMPLE_MAX_EVENTS; i++) {
			struct ledger_entry *e = ledger_entry(l, i, cpu);
			struct ledger_slot s;

			ledger_adopt(e, 1, 0, &s);
			s.tally.samples = (uint64_t)cpu * 10 + i;
			sums[i] += s.tally.samples;
			ledger_write(e, &s);
		}
	}
	CHECK_INT(ledger_map(fd, &other), ==, 0);
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
		CHECK_INT(ledger_sum(other, i).samples, ==, sums[i]);
}

static void test_refused(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL, *other = NULL;
	_cleanup_close_ int fd = ledger_new(&l), small = memfd_create("small", MFD_CLOEXEC);

	CHECK(!ledger_entry(l, SAMPLE_MAX_EVENTS + 1, 0));
	CHECK(!ledger_entry(l, 0, -1));
	CHECK(!ledger_entry(l, 0, MAX_CPU + 1));
	CHECK_INT(ftruncate(small, 4096), ==, 0);
	CHECK_INT(ledger_map(small, &other), ==, -EBADMSG);
	CHECK_INT(ledger_map(-EBADF, &other), ==, -EBADF);
	CHECK(!other);
	/* Whoever has it cannot take it away under the others. */
	CHECK(ftruncate(fd, 0) < 0 || (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0);
}

static void test_gaps(void)
{
	_cleanup_(ledger_unmapp) struct ledger *l = NULL;
	int fd = ledger_new(&l);
	struct ledger_gap g;

	CHECK(fd >= 0);
	CHECK_INT(ledger_gap(l, 0, &g), ==, -EAGAIN);
	for (uint64_t i = 0; i < 200; i++) {
		CHECK_INT(ledger_n_gaps(l), ==, i);
		CHECK_INT(ledger_gap(l, i, &g), ==, -EAGAIN);
		ledger_begin_gap(l, 10 * i + 1);
		CHECK_INT(ledger_gap(l, i, &g), ==, 0);
		CHECK_INT(g.begin_ns, ==, 10 * i + 1);
		CHECK_INT(g.end_ns, ==, 0);
		ledger_end_gap(l, 10 * i + 5);
		CHECK_INT(ledger_gap(l, i, &g), ==, 0);
		CHECK_INT(g.begin_ns, ==, 10 * i + 1);
		CHECK_INT(g.end_ns, ==, 10 * i + 5);
	}
	CHECK_INT(ledger_gap(l, 190, &g), ==, 0);
	CHECK_INT(g.end_ns, ==, 1905);
	CHECK_INT(ledger_gap(l, 100, &g), ==, -ESTALE);
	CHECK_INT(close_fd(fd), <, 0);
}

int main(void)
{
	RUN(test_either_tail);
	RUN(test_half_written);
	RUN(test_other_ring);
	RUN(test_sum);
	RUN(test_refused);
	RUN(test_gaps);
	return 0;
}
