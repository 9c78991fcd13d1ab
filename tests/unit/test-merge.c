/* SPDX-License-Identifier: Apache-2.0 */
/* The merge on rings in memory that the test writes as a kernel would. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/sample/merge.h"
#include "util/cleanup.h"

#define RING_BYTES 65536
#define GUARD	   MERGE_GUARD_NS

static const struct sample_options options = {.rate_hz = 99, .kernel_stacks = true};
static struct sample_features features = {.kernel = true, .dummy = true, .comm_exec = true};

/* What the next ring is given to read(2) its count of losses from. */
static int counter_fd = -1;

/* The writer's side of a ring. */
struct writer {
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t head;
	int fd;
};

static struct writer make_ring_of(struct merger *m, int cpu, uint32_t index, uint64_t start)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes = RING_BYTES;
	struct writer w = {.head = start};
	struct ring ring;
	int fd = memfd_create("ring", MFD_CLOEXEC);
	void *p;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, (off_t)(page + bytes)), ==, 0);
	p = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	w.page = p;
	w.data = (uint8_t *)p + page;
	w.page->data_head = w.page->data_tail = start;
	CHECK_INT(ring_map(&ring, fd, &bytes, false), ==, 0);
	CHECK_INT(ring.tail, ==, (int64_t)start);
	ring.fd = counter_fd;
	CHECK_INT(merger_add_ring(m, cpu, index, &ring), ==, 0);
	w.fd = fd;
	return w;
}

static struct writer make_ring(struct merger *m, int cpu, bool sideband, uint64_t start)
{
	return make_ring_of(m, cpu, sideband ? MERGE_SIDEBAND : 0, start);
}

static void drop_writer(struct writer *w)
{
	(void)munmap(w->page, (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES);
	(void)close_fd(w->fd);
}

static void put(struct writer *w, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w->data[w->head++ & (RING_BYTES - 1)] = ((const uint8_t *)data)[i];
}

static void publish(struct writer *w)
{
	__atomic_store_n(&w->page->data_head, w->head, __ATOMIC_RELEASE);
}

static void put64(struct writer *w, uint64_t v)
{
	put(w, &v, sizeof(v));
}

static void put_header(struct writer *w, uint32_t type, size_t size)
{
	struct perf_event_header h = {.type = type, .size = (uint16_t)size};

	put(w, &h, sizeof(h));
}

static void put_trailer(struct writer *w, uint32_t tid, uint64_t time_ns)
{
	put64(w, (uint64_t)tid << 32 | tid);
	put64(w, time_ns);
	put64(w, 0);
}

static void write_comm(struct writer *w, uint32_t tid, uint64_t time_ns)
{
	put_header(w, PERF_RECORD_COMM, 8 + 8 + 8 + 24);
	put64(w, (uint64_t)tid << 32 | tid);
	put64(w, 0x6d6d6f63); /* "comm" */
	put_trailer(w, tid, time_ns);
	publish(w);
}

/* A kernel chain of n addresses, each the sample's tid: what is read back can be checked. */
static void write_sample(struct writer *w, uint32_t tid, uint64_t time_ns, uint64_t n)
{
	put_header(w, PERF_RECORD_SAMPLE, 8 + 40 + 8 + 8 + n * 8);
	put64(w, 0);
	put64(w, (uint64_t)tid << 32 | tid);
	put64(w, time_ns);
	put64(w, 0);
	put64(w, 1);
	put64(w, n + 1);
	put64(w, (uint64_t)PERF_CONTEXT_KERNEL);
	for (uint64_t i = 0; i < n; i++)
		put64(w, tid);
	publish(w);
}

static void write_lost(struct writer *w, uint64_t n, uint64_t time_ns)
{
	put_header(w, PERF_RECORD_LOST, 8 + 16 + 24);
	put64(w, 0);
	put64(w, n);
	put_trailer(w, 0, time_ns);
	publish(w);
}

static struct merger *new_merger(void)
{
	struct merger *m = NULL;

	CHECK_INT(merger_new(&m, &options, &features), ==, 0);
	return m;
}

static void expect(struct merger *m, enum record_type type, uint32_t tid, uint64_t time_ns)
{
	struct record r;

	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, type);
	CHECK_INT(r.tid, ==, tid);
	CHECK_INT(r.time_ns, ==, time_ns);
	CHECK(r.from_sideband == (type != RECORD_SAMPLE));
}

static void test_order_and_guard(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s0 = make_ring(m, 0, false, 0), b0 = make_ring(m, 0, true, 0);
	struct writer s1 = make_ring(m, 1, false, 0), b1 = make_ring(m, 1, true, 0);
	uint64_t t = 10 * GUARD;
	struct record r;

	write_sample(&s0, 1, t + 10, 3);
	write_comm(&b1, 2, t + 5);
	write_sample(&s1, 3, t + 7, 3);
	write_comm(&b0, 4, t + 7); /* the same time: what explains comes first */
	write_comm(&b0, 5, t + GUARD + 7);
	merger_begin(m, 0);
	expect(m, RECORD_COMM, 2, t + 5);
	expect(m, RECORD_COMM, 4, t + 7);
	expect(m, RECORD_SAMPLE, 3, t + 7);
	/* t + 10 is within the guard of the youngest: it waits. */
	CHECK(!merger_next(m, &r));
	CHECK(!merger_next(m, &r));

	/* A late record, older than the one that waited, now comes before it. */
	write_comm(&b1, 6, t + 9);
	write_sample(&s1, 7, t + 3 * GUARD, 3);
	merger_begin(m, 0);
	expect(m, RECORD_COMM, 6, t + 9);
	expect(m, RECORD_SAMPLE, 1, t + 10);
	expect(m, RECORD_COMM, 5, t + GUARD + 7);
	CHECK(!merger_next(m, &r));
	/* Nothing moved since: nothing is on its way. */
	merger_begin(m, 0);
	expect(m, RECORD_SAMPLE, 7, t + 3 * GUARD);
	CHECK(!merger_next(m, &r));
	/* And a flush does not wait at all. */
	write_comm(&b0, 8, t + 3 * GUARD + 1);
	merger_begin(m, UINT64_MAX);
	expect(m, RECORD_COMM, 8, t + 3 * GUARD + 1);
	CHECK(!merger_next(m, &r));
	/* What is old enough does not wait, even if nothing came after it. */
	write_comm(&b0, 9, t + 4 * GUARD);
	write_comm(&b0, 10, t + 4 * GUARD + 1);
	merger_begin(m, t + 4 * GUARD);
	expect(m, RECORD_COMM, 9, t + 4 * GUARD);
	CHECK(!merger_next(m, &r));
	drop_writer(&s0);
	drop_writer(&s1);
	drop_writer(&b0);
	drop_writer(&b1);
}

/* Never what the caller has, in a drain all but a small part, and after it all. */
static void test_tail_is_released_in_parts(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s = make_ring(m, 0, false, 0);
	uint64_t begin = 0, n_moves = 0, before = 0;
	struct record r;

	for (uint32_t i = 1; i <= 200; i++)
		write_sample(&s, i, 100 * i, 1);
	merger_begin(m, UINT64_MAX);
	for (; merger_next(m, &r); begin += 72) {
		CHECK_INT(s.page->data_tail, <=, (int64_t)begin);
		CHECK_INT(s.page->data_tail, >=, (int64_t)begin - RING_BYTES / 64);
		n_moves += s.page->data_tail != before;
		before = s.page->data_tail;
	}
	CHECK_INT(begin, ==, 200 * 72);
	CHECK_INT(s.page->data_tail, ==, 200 * 72);
	CHECK_INT(n_moves, >=, 10);
	CHECK_INT(n_moves, <=, 20);
	/* A large one at once. */
	write_sample(&s, 1, 100 * 201, 200);
	write_sample(&s, 2, 100 * 202, 1);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(s.page->data_tail, ==, 200 * 72);
	CHECK(merger_next(m, &r));
	CHECK_INT(s.page->data_tail, ==, (int64_t)(s.head - 72));
	drop_writer(&s);
}

/* Records of all lengths over the end of the ring, with 64-bit positions far from 0. */
static void test_wrap(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s = make_ring(m, 0, false, UINT64_MAX - 3 * RING_BYTES - 7);
	uint64_t time_ns = 1, n_wrapped = 0;
	struct record r;

	for (uint32_t i = 1; i < 3000; i++) {
		uint64_t n = i * 7 % 101 + 1, before = s.head;

		write_sample(&s, i, time_ns++, n);
		n_wrapped += before / RING_BYTES != s.head / RING_BYTES;
		merger_begin(m, UINT64_MAX);
		CHECK(merger_next(m, &r));
		CHECK_INT(r.type, ==, RECORD_SAMPLE);
		CHECK_INT(r.tid, ==, i);
		CHECK_INT(r.sample.n_kernel, ==, n);
		CHECK_INT((uintptr_t)r.sample.kernel % 8, ==, 0);
		for (uint64_t k = 0; k < n; k++)
			CHECK_INT(r.sample.kernel[k], ==, i);
		CHECK(!merger_next(m, &r));
	}
	CHECK_INT(n_wrapped, >, 10);
	drop_writer(&s);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Many rings, drained at random moments: all records come, once, in order, and in each drain those
 * up to its limit. */
static void test_random_rings(void)
{
	enum { N_CPUS = 7, N_RECORDS = 20000 };
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer w[N_CPUS * 2];
	uint64_t state = 88172645463325252, now = 100 * GUARD, last = 0, sum = 0, n_out = 0;
	uint64_t times[N_RECORDS + 1], n_due = 0, k = 0;
	struct record r;

	for (int i = 0; i < N_CPUS * 2; i++)
		w[i] = make_ring(m, i / 2 * 3, i % 2, 0);
	for (uint32_t i = 1; i <= N_RECORDS; i++) {
		uint64_t settled, limit;

		if (random_next(&state) % 4 == 0)
			k = random_next(&state) % (N_CPUS * 2);
		now += random_next(&state) % (GUARD / 4);
		times[i] = now;
		if (k % 2)
			write_comm(&w[k], i, now);
		else
			write_sample(&w[k], i, now, random_next(&state) % 20);
		if (random_next(&state) % 50 && i != N_RECORDS)
			continue;
		settled = random_next(&state) % 3 ? now - random_next(&state) % (8 * GUARD) : 0;
		limit = settled > now - GUARD ? settled : now - GUARD;
		if (i == N_RECORDS)
			settled = limit = UINT64_MAX;
		merger_begin(m, settled);
		while (merger_next(m, &r)) {
			CHECK(r.type != RECORD_BAD);
			CHECK(r.time_ns >= last);
			last = r.time_ns;
			sum += r.tid;
			n_out++;
		}
		CHECK_INT(merger_limit(m), ==, limit);
		while (n_due < i && times[n_due + 1] <= limit)
			n_due++;
		CHECK_INT(n_out, ==, n_due);
	}
	CHECK_INT(n_out, ==, N_RECORDS);
	CHECK_INT(sum, ==, (uint64_t)N_RECORDS * (N_RECORDS + 1) / 2);
	for (int i = 0; i < N_CPUS * 2; i++)
		drop_writer(&w[i]);
}

static void test_damaged_ring(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s = make_ring(m, 0, false, 0), b = make_ring(m, 0, true, 0);
	struct record r;

	/* A size of 4: there is no way to the record behind it. */
	write_comm(&b, 1, 10);
	write_sample(&s, 2, 20, 1);
	put_header(&s, PERF_RECORD_SAMPLE, 4);
	write_sample(&s, 3, 30, 1);
	write_comm(&b, 4, 40);
	merger_begin(m, UINT64_MAX);
	expect(m, RECORD_COMM, 1, 10);
	expect(m, RECORD_SAMPLE, 2, 20);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, RECORD_BAD);
	expect(m, RECORD_COMM, 4, 40);
	CHECK(!merger_next(m, &r));
	/* The ring goes on behind what could not be read. */
	CHECK_INT(s.page->data_tail, ==, s.head);
	write_sample(&s, 5, 50, 1);
	merger_begin(m, UINT64_MAX);
	expect(m, RECORD_SAMPLE, 5, 50);
	/* A size beyond what is written; a head further than the ring is long. */
	put_header(&s, PERF_RECORD_SAMPLE, 4096);
	publish(&s);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, RECORD_BAD);
	CHECK(!merger_next(m, &r));
	s.head += 5 * RING_BYTES;
	publish(&s);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, RECORD_BAD);
	CHECK(!merger_next(m, &r));
	drop_writer(&s);
	drop_writer(&b);
}

static void test_remove_in_the_middle(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s0 = make_ring(m, 0, false, 0), s1 = make_ring(m, 1, false, 0);
	struct record r;

	write_sample(&s0, 1, 10, 1);
	write_sample(&s1, 2, 20, 1);
	write_sample(&s0, 3, 30, 1);
	merger_begin(m, UINT64_MAX);
	expect(m, RECORD_SAMPLE, 1, 10);
	merger_remove_cpu(m, 0);
	expect(m, RECORD_SAMPLE, 2, 20);
	CHECK(!merger_next(m, &r));
	drop_writer(&s0);
	drop_writer(&s1);
}

static void test_urgent_ring_is_emptied(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer s = make_ring(m, 0, false, 0);
	uint64_t time_ns = 10 * GUARD;
	struct record r;

	while (s.head < RING_BYTES / 2)
		write_sample(&s, 1, time_ns++, 100);
	merger_begin(m, 0);
	CHECK(!merger_next(m, &r));
	while (s.head < RING_BYTES / 10 * 9)
		write_sample(&s, 1, time_ns++, 100);
	merger_begin(m, 0);
	while (merger_next(m, &r))
		;
	CHECK_INT(s.page->data_tail, ==, s.head);
	drop_writer(&s);
}

static void test_lost_is_told(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct writer b = make_ring(m, 0, true, 0);
	struct record r;

	write_lost(&b, 7, 10);
	write_lost(&b, 5, 20);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, RECORD_LOST);
	CHECK_INT(r.lost, ==, 7);
	CHECK(r.from_sideband);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.lost, ==, 5);
	CHECK_INT(merger_read_lost(m).sideband, ==, 0);
	drop_writer(&b);
}

/* An event whose count of losses is what was written last, once. */
struct counter {
	int fd[2];
};

static struct counter make_counter(void)
{
	struct counter c;

	CHECK_INT(pipe2(c.fd, O_NONBLOCK | O_CLOEXEC), ==, 0);
	return c;
}

static void write_count(const struct counter *c, uint64_t n)
{
	const uint64_t counts[] = {0, 0, n}; /* value, time enabled, lost */

	CHECK_INT(write(c->fd[1], counts, sizeof(counts)), ==, sizeof(counts));
}

static void drop_counter(struct counter *c)
{
	(void)close_fd(c->fd[0]);
	(void)close_fd(c->fd[1]);
}

static void check_losses(struct merger *m, uint64_t n_samples, uint64_t n_sideband)
{
	const struct sample_losses have = merger_read_lost(m);

	CHECK_INT(have.samples[0], ==, n_samples);
	CHECK_INT(have.sideband, ==, n_sideband);
}

static struct writer make_counted_ring(struct merger *m, bool sideband, const struct counter *c)
{
	struct writer w;

	counter_fd = c->fd[0];
	w = make_ring(m, 0, sideband, 0);
	counter_fd = -1;
	return w;
}

/* What the events count, by kind of ring; a record that comes late says nothing new. */
static void test_lost_is_read(void)
{
	struct counter samples = make_counter(), sideband = make_counter(), other = make_counter();
	struct merger *m;
	struct writer a, b;
	struct record r;

	features.read_lost = true;
	m = new_merger();
	features.read_lost = false;
	a = make_counted_ring(m, false, &samples);
	b = make_counted_ring(m, true, &sideband);
	write_count(&samples, 3);
	write_count(&sideband, 5);
	check_losses(m, 3, 5);
	write_lost(&b, 6, 10);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.lost, ==, 1);
	write_count(&samples, 3);
	write_count(&sideband, 6);
	check_losses(m, 0, 0);
	/* An event in the place of another: it begins with 0, and what the other one had stays. */
	write_count(&samples, 4);
	merger_replace_event(m, 0, 0, other.fd[0]);
	write_count(&other, 2);
	write_count(&sideband, 6);
	check_losses(m, 3, 0);
	merger_free(m);
	drop_counter(&samples);
	drop_counter(&sideband);
	drop_counter(&other);
	drop_writer(&a);
	drop_writer(&b);
}

/* ---- The ledger ---- */

/* Another reader of the same ring, as after the death of the one before. */
static struct merger *next_reader(const struct writer *w, struct ledger *ledger)
{
	struct merger *m = new_merger();
	uint64_t bytes = RING_BYTES;
	struct ring ring;

	CHECK_INT(ring_map(&ring, w->fd, &bytes, false), ==, 0);
	ring.fd = -1;
	merger_keep_ledger(m, ledger);
	CHECK_INT(merger_add_ring(m, 0, 0, &ring), ==, 0);
	merger_begin(m, UINT64_MAX);
	return m;
}

static void check_tally(const struct ledger *l, uint64_t samples, uint64_t filtered, uint64_t lost)
{
	const struct sample_tally t = ledger_sum(l, 0);

	CHECK_INT(t.samples, ==, samples);
	CHECK_INT(t.filtered, ==, filtered);
	CHECK_INT(t.lost, ==, lost);
}

/*
 * Readers that are killed while they have a record, which the next one is given again: in the
 * ledger each is once. Four records are a part of the ring, whose space is released.
 */
static void test_readers_die(void)
{
	_cleanup_(ledger_unmapp) struct ledger *ledger = NULL;
	_cleanup_close_ int fd = ledger_new(&ledger);
	struct merger *first = new_merger(), *m;
	struct writer w;
	struct record r;

	CHECK_INT(fd, >=, 0);
	merger_keep_ledger(first, ledger);
	w = make_ring(first, 0, false, 0);
	for (uint32_t i = 0; i < 30; i++)
		write_sample(&w, i, i, 24);
	write_lost(&w, 7, 30);
	for (uint32_t next = 0; next < 30;) {
		m = next_reader(&w, ledger);
		CHECK_INT(merger_start(m, 0).samples, ==, next);
		for (uint32_t i = 0; i < 5; i++) {
			CHECK(merger_next(m, &r));
			CHECK_INT(r.tid, ==, next + i);
			if (r.tid % 3 == 0)
				merger_filter(m);
		}
		next += 4;
		check_tally(ledger, next, (next + 2) / 3, 0);
		merger_free(m);
		if (next == 28)
			break;
	}
	m = next_reader(&w, ledger);
	CHECK(merger_next(m, &r));
	CHECK(merger_next(m, &r));
	CHECK(merger_next(m, &r));
	CHECK_INT(r.type, ==, RECORD_LOST);
	CHECK_INT(r.lost, ==, 7);
	check_tally(ledger, 28, 9 + 1, 0);
	CHECK(!merger_next(m, &r));
	check_tally(ledger, 30, 10, 7);
	merger_free(m);
	merger_free(first);
	drop_writer(&w);
}

/* A loss that one reader got is not reported to the next one, whichever way it comes. */
static void test_losses_are_told_once(void)
{
	_cleanup_(ledger_unmapp) struct ledger *ledger = NULL;
	_cleanup_close_ int fd = ledger_new(&ledger);
	struct counter c = make_counter();
	struct merger *first, *m;
	struct writer w;
	struct record r;

	CHECK_INT(fd, >=, 0);
	features.read_lost = true;
	first = new_merger();
	merger_keep_ledger(first, ledger);
	counter_fd = c.fd[0];
	w = make_ring(first, 0, false, 0);
	counter_fd = -1;
	write_count(&c, 5);
	check_losses(first, 5, 0);
	check_tally(ledger, 0, 0, 5);
	/* Of these the kernel has two more in no record yet. */
	write_lost(&w, 5, 10);
	write_sample(&w, 1, 10, 0);
	m = next_reader(&w, ledger);
	features.read_lost = false;
	CHECK(merger_next(m, &r));
	CHECK_INT(r.lost, ==, 0);
	CHECK(merger_next(m, &r));
	CHECK(!merger_next(m, &r));
	check_tally(ledger, 1, 0, 5);
	write_lost(&w, 2, 20);
	merger_begin(m, UINT64_MAX);
	CHECK(merger_next(m, &r));
	CHECK_INT(r.lost, ==, 2);
	CHECK(!merger_next(m, &r));
	check_tally(ledger, 1, 0, 7);
	merger_free(m);
	merger_free(first);
	drop_counter(&c);
	drop_writer(&w);
}

/* By a fixed period: no period in the sample, and no stack either. */
static void write_counted(struct writer *w, uint32_t tid, uint64_t time_ns)
{
	put_header(w, PERF_RECORD_SAMPLE, 8 + 32);
	put64(w, 0);
	put64(w, (uint64_t)tid << 32 | tid);
	put64(w, time_ns);
	put64(w, 0);
	publish(w);
}

/* Each event has a layout of its own, and all are in one order. */
static void test_two_events(void)
{
	_cleanup_(merger_freep) struct merger *m = new_merger();
	struct sample_options counted = options;
	struct writer s0, s1, b0;
	struct record r;

	counted.index = 1;
	counted.period = 1;
	counted.kernel_stacks = false;
	CHECK_INT(merger_add_event(m, &counted, &features), ==, 0);
	s0 = make_ring_of(m, 0, 0, 0);
	s1 = make_ring_of(m, 0, 1, 0);
	b0 = make_ring(m, 0, true, 0);
	for (uint32_t i = 0; i < 100; i++) {
		if (i % 3 == 0)
			write_sample(&s0, i, i, i % 7);
		else if (i % 3 == 1)
			write_counted(&s1, i, i);
		else
			write_comm(&b0, i, i);
	}
	merger_begin(m, UINT64_MAX);
	for (uint32_t i = 0; i < 100; i++) {
		CHECK(merger_next(m, &r));
		CHECK_INT(r.type, ==, i % 3 == 2 ? RECORD_COMM : RECORD_SAMPLE);
		CHECK_INT(r.tid, ==, i);
		if (r.type == RECORD_SAMPLE) {
			CHECK_INT(r.index, ==, i % 3);
			CHECK_INT(r.sample.n_kernel, ==, i % 3 ? 0 : i % 7);
		}
	}
	CHECK(!merger_next(m, &r));
	merger_remove_cpu(m, 0);
	merger_begin(m, UINT64_MAX);
	CHECK(!merger_next(m, &r));
	for (uint32_t i = 2; i < SAMPLE_MAX_EVENTS; i++)
		CHECK_INT(merger_add_event(m, &counted, &features), ==, 0);
	CHECK_INT(merger_add_event(m, &counted, &features), ==, -E2BIG);
	drop_writer(&s0);
	drop_writer(&s1);
	drop_writer(&b0);
}

static void test_map_sizes(void)
{
	_cleanup_close_ int fd = memfd_create("ring", MFD_CLOEXEC);
	struct ring r;
	uint64_t bytes = 3 * 65536;

	CHECK_INT(ftruncate(fd, 1 << 20), ==, 0);
	CHECK_INT(ring_map(&r, fd, &bytes, true), ==, 0);
	CHECK_INT(bytes, ==, 2 * 65536);
	CHECK_INT(r.data_bytes, ==, 2 * 65536);
	ring_unmap(&r);
	/* A ring mapped elsewhere has the size it has. */
	bytes = 3 * 65536;
	CHECK_INT(ring_map(&r, fd, &bytes, false), ==, -EINVAL);
	bytes = UINT64_C(1) << 40;
	CHECK_INT(ring_map(&r, fd, &bytes, true), ==, -EINVAL);
	bytes = 65536;
	CHECK_INT(ring_map(&r, -1, &bytes, true), <, 0);
}

int main(void)
{
	RUN(test_order_and_guard);
	RUN(test_tail_is_released_in_parts);
	RUN(test_wrap);
	RUN(test_random_rings);
	RUN(test_damaged_ring);
	RUN(test_remove_in_the_middle);
	RUN(test_urgent_ring_is_emptied);
	RUN(test_lost_is_told);
	RUN(test_lost_is_read);
	RUN(test_readers_die);
	RUN(test_losses_are_told_once);
	RUN(test_two_events);
	RUN(test_map_sizes);
	return 0;
}
