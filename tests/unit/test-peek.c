/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest samples of a ring of this process, against what its owner reads there: each sample
 * wakes who polls, is the last one by then, and stays where it is.
 */
#include <poll.h>

#include "src/sample/peek.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { N_SAMPLES = 40, WATCHER_STACK = 4096 };

static struct sample_options options = {
	.rate_hz = 199,
	.stack_bytes = WATCHER_STACK,
	.kernel_stacks = true,
	.ring_bytes = 4 << 20,
	.this_thread = true,
	.wake_each = true,
};
static struct sample_features features;
static char error[512];

/* Uses the CPU so long, and until the kernel says that there is something. */
static void wait_for_sample(int fd, uint64_t ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t begin = clock_monotonic_ns();

	while (poll(&p, 1, 0) == 0 || clock_monotonic_ns() - begin < ns)
		CHECK_INT(clock_monotonic_ns() - begin, <, 60 * NSEC_PER_SEC);
}

/* Of main(), which stands still above us: the copy of the stack has it, if it goes as far. */
static const uint8_t *mark;
enum { MARK_BYTES = 64 };

static bool has_stack(const struct peek *p, const struct record *r)
{
	uint64_t at = (uintptr_t)mark, start, n;
	const uint8_t *bytes = peek_stack(p, r, &start, &n);

	if (!bytes || start > at || at + MARK_BYTES > start + n)
		return false;
	return memcmp(bytes + (at - start), mark, MARK_BYTES) == 0;
}

/* Looks at up to max samples at a time, after so much time. */
static void check(uint32_t max, uint64_t ns)
{
	struct peek_sample seen[N_SAMPLES + PEEK_MAX];
	struct sample_cpu cpu;
	struct peek *peek;
	struct merger *m;
	struct record r, whole;
	uint32_t n_all = 0, n = 0, k = 0, n_stacks = 0, n_most = 0;

	options.regs_mask = sample_user_regs;
	if (sample_probe(&options, 0, &features, error, sizeof(error)) < 0)
		SKIP("%s", error);
	CHECK_INT(sample_open_cpu(&options, &features, -1, 0, NULL, &cpu, error, sizeof(error)), ==,
		  0);
	CHECK_INT(merger_new(&m, &options, &features), ==, 0);
	cpu.sample_ring_bytes = options.ring_bytes;
	cpu.sideband_ring_bytes = 1 << 18;
	CHECK_INT(merger_add_cpu(m, &cpu), ==, 0);
	CHECK_INT(peek_new(&peek, &options, &features, cpu.sample_fd, cpu.sample_ring_bytes), ==,
		  0);
	CHECK_INT(peek_look(peek, max), ==, 0);
	CHECK(!peek_next(peek, &seen[0]));
	CHECK_INT(sample_enable_cpu(&cpu, true), ==, 0);
	while (n < N_SAMPLES) {
		uint32_t begin = n;

		wait_for_sample(cpu.sample_fd, ns);
		n_all += peek_look(peek, max);
		for (; peek_next(peek, &seen[n]); n++) {
			CHECK_INT(n - begin, <, max);
			CHECK_INT(seen[n].pid, ==, getpid());
			CHECK_INT(seen[n].tid, ==, getpid());
			if (features.clockid)
				CHECK_INT(seen[n].time_ns, <=, clock_monotonic_ns());
			CHECK(peek_record(peek, &whole));
			CHECK_INT(whole.time_ns, ==, seen[n].time_ns);
			CHECK_INT(whole.tid, ==, seen[n].tid);
			n_stacks += has_stack(peek, &whole);
			CHECK(peek_is_there(peek));
		}
		n_most = n - begin > n_most ? n - begin : n_most;
	}
	CHECK_INT(n_most, ==, max);
	n_all += n;
	CHECK_INT(sample_enable_cpu(&cpu, false), ==, 0);
	/* The owner finds all of them, in this order, and none in front of the first. */
	merger_begin(m, UINT64_MAX);
	while (merger_next(m, &r)) {
		if (r.type != RECORD_SAMPLE || k == n)
			continue;
		n_all--;
		if (r.time_ns != seen[k].time_ns)
			continue;
		CHECK_INT(r.cpu, ==, seen[k].cpu);
		k++;
	}
	CHECK_INT(k, ==, n);
	CHECK_INT(n_stacks, >, N_SAMPLES / 2);
	CHECK_INT(n_all, ==, 0);
	(void)peek_look(peek, max);
	CHECK(!peek_next(peek, &seen[0]) || seen[0].time_ns > seen[n - 1].time_ns);
	peek_free(peek);
	merger_free(m);
	sample_close_cpu(&cpu);
}

static void test_newest(void)
{
	check(1, 0);
}

static void test_several(void)
{
	check(3, 60 * NSEC_PER_MSEC);
}

int main(void)
{
	uint8_t bytes[MARK_BYTES];

	for (int i = 0; i < MARK_BYTES; i++)
		bytes[i] = (uint8_t)(i * 37 + 5);
	mark = bytes;
	RUN(test_newest);
	RUN(test_several);
	return 0;
}
