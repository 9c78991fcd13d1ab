/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of a thread's goroutine, by the reads that they take: through its register, through the
 * struct of the thread, and where the goroutine goes on between two reads.
 */
#include <link.h>
#include <sched.h>
#include <sys/syscall.h>

#include "src/reader/go-threads.h"
#include "tests/unit/fake-stat.h"
#include "tests/unit/test.h"

enum { NUMBER = 4711, G_THREAD = 48, CPU = 3 };

static uint8_t thread[512] __attribute__((aligned(8)));
static uint8_t mine[512] __attribute__((aligned(8))), system_own[512] __attribute__((aligned(8)));
static uint64_t labels[2][3], pair[4];
static char text[] = "00f067aa0ba902b7";
static struct go_layout layout;
static struct go_threads *threads;
static uint8_t bytes[GO_LABELS_MAX_BYTES];
static int n_reads, change_at, stat_fd;
static uint32_t cycle;
static enum frame_record_span span; /* what became of it at the last read */

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* The thread goes on, on another CPU. */
static void go_on(void)
{
	put(mine + layout.labels, (uintptr_t)labels[1]);
	fake_stat_set(stat_fd, CPU + 1);
}

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address < 4096)
		return false;
	if (++n_reads == change_at)
		go_on();
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static uint32_t read_sample(const struct go_sample *s)
{
	struct memory m = {.read = read_own, .reads_left = 48, .bytes_left = 16384};
	struct memory now = m;
	uint32_t n = 99;

	n_reads = 0;
	span = go_threads_read(threads, &m, &now, s, bytes, &n);
	CHECK_INT(n > 0, ==, span == FRAME_RECORD_SPAN_READ);
	return n;
}

static uint32_t read_labels(const uint8_t *reg)
{
	return read_sample(&(struct go_sample){
		.number = NUMBER, .cpu = CPU, .stat = stat_fd, .goroutine = (uintptr_t)reg});
}

static void check_none(const uint8_t *reg, enum frame_record_span why)
{
	CHECK_INT(read_labels(reg), ==, 0);
	CHECK_INT(span, ==, why);
}

static void begin_with(uint64_t cycle_at, const struct thread_variable *library)
{
	CHECK(go_layout_find(26, &layout));
	threads = go_threads_new(&layout, cycle_at, library);
	CHECK(threads != NULL);
	change_at = 0;
	stat_fd = fake_stat_new();
	fake_stat_set(stat_fd, CPU);
	put(thread + layout.number, NUMBER);
	put(thread + layout.current, (uintptr_t)mine);
	put(mine + G_THREAD, (uintptr_t)thread);
	put(mine + layout.goroutine, 18);
	put(mine + layout.labels, (uintptr_t)labels[0]);
	put(system_own + G_THREAD, (uintptr_t)thread);
	for (int i = 0; i < 2; i++) {
		labels[i][0] = (uintptr_t)pair;
		labels[i][1] = labels[i][2] = 1;
	}
	pair[0] = (uintptr_t) "span_id";
	pair[1] = 7;
	pair[2] = (uintptr_t)text;
	pair[3] = sizeof(text) - 1;
}

static void begin(uint64_t cycle_at)
{
	begin_with(cycle_at, &(struct thread_variable){0});
}

static void test_few_reads(void)
{
	enum { FIND = 2, LABELS = 4, WHOLE = GO_LABELS_HEAD_BYTES + 2 + 7 + 16 };

	begin(0);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, FIND + 1 + LABELS);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 1 + LABELS);
	/* Memory of labels is used again: the same place, another span. */
	text[15] = '8';
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(bytes[WHOLE - 1], ==, '8');
	CHECK_INT(n_reads, ==, 1 + LABELS);
	put(mine + layout.labels, 0);
	check_none(mine, FRAME_RECORD_SPAN_NONE);
	CHECK_INT(n_reads, ==, 1);
	/* An empty set, and no set. */
	put(mine + layout.labels, (uintptr_t)labels[1]);
	labels[1][1] = 0;
	check_none(mine, FRAME_RECORD_SPAN_NONE);
	labels[1][1] = 3;
	check_none(mine, FRAME_RECORD_SPAN_UNREADABLE);
	/* The struct is another thread's by now. */
	put(thread + layout.number, NUMBER + 1);
	put(mine + G_THREAD, (uintptr_t)system_own);
	check_none(mine, FRAME_RECORD_SPAN_UNREADABLE);
	(void)close(stat_fd);
	free(threads);
}

/* In the runtime the register has another goroutine, which is asked for once. */
static void test_runtime(void)
{
	begin(0);
	CHECK_INT(read_labels(system_own), >, 0);
	CHECK_INT(go_labels_goroutine(bytes), ==, 18);
	CHECK_INT(read_labels(system_own), >, 0);
	CHECK_INT(n_reads, ==, 2 + 4);
	CHECK_INT(read_labels(mine), >, 0);
	CHECK_INT(n_reads, ==, 1 + 4);
	/* One that runs on another thread is not this one's, whatever the register has. */
	put(mine + G_THREAD, (uintptr_t)system_own);
	check_none(mine, FRAME_RECORD_SPAN_NONE);
	(void)close(stat_fd);
	free(threads);
}

static void test_gone_on(void)
{
	begin(0);
	change_at = 7; /* the last read */
	check_none(mine, FRAME_RECORD_SPAN_MOVED);
	CHECK_INT(n_reads, ==, 7);
	change_at = 0;
	put(mine + layout.labels, 0);
	check_none(mine, FRAME_RECORD_SPAN_MOVED);
	fake_stat_set(stat_fd, CPU);
	check_none(mine, FRAME_RECORD_SPAN_NONE);
	(void)close(stat_fd);
	free(threads);
}

/* In the same cycle of the collector the same set is not read again. */
static void test_same_cycle(void)
{
	enum { LABELS = 4, WHOLE = GO_LABELS_HEAD_BYTES + 2 + 7 + 16 };

	begin((uintptr_t)&cycle);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 2 + 1 + LABELS);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 2 + LABELS);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 2);
	CHECK_INT(bytes[WHOLE - 1], ==, text[15]);
	/* It is another goroutine's, too. */
	put(mine + layout.goroutine, 19);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 2);
	CHECK_INT(go_labels_goroutine(bytes), ==, 19);
	/* One that was never seen. */
	put(mine + layout.labels, (uintptr_t)labels[1]);
	CHECK_INT(read_labels(mine), ==, WHOLE);
	CHECK_INT(n_reads, ==, 1 + LABELS);
	put(mine + layout.labels, 0);
	CHECK_INT(read_labels(mine), ==, 0);
	CHECK_INT(n_reads, ==, 1);
	(void)close(stat_fd);
	free(threads);
}

static void test_next_cycle(void)
{
	begin((uintptr_t)&cycle);
	for (int i = 0; i < 3; i++)
		CHECK_INT(read_labels(mine), >, 0);
	CHECK_INT(n_reads, ==, 2);
	/* The place has another set now. */
	cycle += 2;
	text[15] = '9';
	CHECK_INT(read_labels(mine), >, 0);
	CHECK_INT(bytes[GO_LABELS_HEAD_BYTES + 2 + 7 + 15], ==, '9');
	CHECK_INT(n_reads, ==, 6);
	CHECK_INT(read_labels(mine), >, 0);
	CHECK_INT(n_reads, ==, 2);
	/* What its goroutine left while it was read is not kept. */
	cycle += 2;
	text[15] = 'a';
	change_at = 6;
	CHECK_INT(read_labels(mine), ==, 0);
	change_at = 0;
	fake_stat_set(stat_fd, CPU);
	put(mine + layout.labels, (uintptr_t)labels[0]);
	CHECK_INT(read_labels(mine), >, 0);
	CHECK_INT(bytes[GO_LABELS_HEAD_BYTES + 2 + 7 + 15], ==, 'a');
	(void)close(stat_fd);
	free(threads);
}

/* Of glibc 2.35 and later. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static int on_library(struct dl_phdr_info *info, size_t size, void *ret)
{
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1;
}

/* All 0: it does not tell the CPU. */
static struct thread_variable own_library(void)
{
	struct memory m = {.read = read_own, .reads_left = 10000, .bytes_left = 1 << 24};
	struct thread_variable v = {0};
	struct image image;
	uint64_t base = 0;

	if (!&__rseq_offset || !__rseq_size || !dl_iterate_phdr(on_library, &base))
		return v;
	CHECK(image_open(&image, &m, base));
	v.glibc_bytes = thread_struct_bytes(&image);
	v.cpu = (int32_t)__rseq_offset + 4;
	return v;
}

/* The C library's word on the CPU, as it is now, and not the kernel's file. */
static void test_library(void)
{
	const struct thread_variable library = own_library();
	struct go_sample s = {.number = (uint32_t)gettid(), .goroutine = (uintptr_t)mine};
	cpu_set_t all, one;
	size_t size;

	if (!library.cpu)
		return;
	CHECK_INT(syscall(SYS_get_robust_list, 0, &s.robust_list, &size), ==, 0);
	CHECK_INT(sched_getaffinity(0, sizeof(all), &all), ==, 0);
	s.cpu = (uint32_t)sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(s.cpu, &one);
	CHECK_INT(sched_setaffinity(0, sizeof(one), &one), ==, 0);
	begin_with(0, &library);
	s.stat = stat_fd; /* it says another one */
	put(thread + layout.number, s.number);
	CHECK_INT(read_sample(&s), >, 0);
	CHECK_INT(n_reads, ==, 2 + 1 + 4 + 1);
	CHECK_INT(read_sample(&s), >, 0);
	CHECK_INT(n_reads, ==, 1 + 4 + 1);
	s.cpu++;
	CHECK_INT(read_sample(&s), ==, 0);
	CHECK_INT(span, ==, FRAME_RECORD_SPAN_MOVED);
	put(mine + layout.labels, 0);
	CHECK_INT(read_sample(&s), ==, 0);
	CHECK_INT(span, ==, FRAME_RECORD_SPAN_MOVED);
	s.cpu--;
	CHECK_INT(read_sample(&s), ==, 0);
	CHECK_INT(span, ==, FRAME_RECORD_SPAN_NONE);
	/* Not the CPU of another thread. */
	s.robust_list += 16;
	CHECK_INT(read_sample(&s), ==, 0);
	CHECK_INT(span, ==, FRAME_RECORD_SPAN_MOVED);
	CHECK_INT(sched_setaffinity(0, sizeof(all), &all), ==, 0);
	(void)close(stat_fd);
	free(threads);
}

int main(void)
{
	RUN(test_few_reads);
	RUN(test_runtime);
	RUN(test_gone_on);
	RUN(test_same_cycle);
	RUN(test_next_cycle);
	RUN(test_library);
	return 0;
}
