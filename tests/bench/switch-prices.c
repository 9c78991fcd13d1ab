/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch-prices-bench [PAIRS]: what the kernel takes for each context switch while it records
 * switches in one way or another. As root, with tracefs. Two processes wake each other by pipes on
 * one CPU. Each way is measured beside none at all, in pairs and in any order: printed are the
 * nanoseconds of CPU time that a switch takes more, the median of all pairs and the half of them
 * around it, and how many bytes of the ring it fills.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "src/sample/sample.h"

enum { CPU = 0, RING_BYTES = 16 << 20, ROUNDS = 5000, MAX_PAIRS = 1000 };

struct way {
	const char *name;
	void (*change)(struct perf_event_attr *a);
	const char *filter;
	bool second; /* with the event of stacks beside it, which has used up its grant */
};

static void none(struct perf_event_attr *a)
{
	a->type = PERF_TYPE_SOFTWARE;
	a->config = PERF_COUNT_SW_DUMMY;
}

static void same(struct perf_event_attr *a)
{
	(void)a;
}

static void kernel_clock(struct perf_event_attr *a)
{
	a->use_clockid = 0;
	a->clockid = 0;
}

static void raw_clock(struct perf_event_attr *a)
{
	a->clockid = CLOCK_MONOTONIC_RAW;
}

static void no_time(struct perf_event_attr *a)
{
	a->sample_type &= ~(uint64_t)PERF_SAMPLE_TIME;
}

static void no_tid(struct perf_event_attr *a)
{
	a->sample_type &= ~(uint64_t)PERF_SAMPLE_TID;
}

static void no_regs(struct perf_event_attr *a)
{
	a->sample_type &= ~(uint64_t)PERF_SAMPLE_REGS_USER;
	a->sample_regs_user = 0;
}

/* Its lowest one less. */
static void fewer_regs(struct perf_event_attr *a)
{
	a->sample_regs_user &= a->sample_regs_user - 1;
}

static void one_reg(struct perf_event_attr *a)
{
	fewer_regs(a);
	fewer_regs(a);
}

static void argument(struct perf_event_attr *a)
{
	a->sample_regs_user = sample_switch_regs(true);
}

static void no_raw(struct perf_event_attr *a)
{
	a->sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
}

static void only_raw(struct perf_event_attr *a)
{
	no_regs(a);
	a->sample_type = PERF_SAMPLE_RAW;
}

static void nothing(struct perf_event_attr *a)
{
	no_regs(a);
	a->sample_type = 0;
}

static void counted(struct perf_event_attr *a)
{
	no_regs(a);
	a->sample_type = 0;
	a->sample_period = 0;
}

static void with_cpu(struct perf_event_attr *a)
{
	a->sample_type |= PERF_SAMPLE_CPU;
}

static void with_ip(struct perf_event_attr *a)
{
	a->sample_type |= PERF_SAMPLE_IP;
}

static void no_trailers(struct perf_event_attr *a)
{
	a->sample_id_all = 0;
}

static void wakes(struct perf_event_attr *a)
{
	a->wakeup_watermark = 4096;
}

static void wakes_each(struct perf_event_attr *a)
{
	a->watermark = 0;
	a->wakeup_events = 1;
}

static void chain(struct perf_event_attr *a)
{
	a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	a->exclude_callchain_user = 1;
}

static void short_chain(struct perf_event_attr *a)
{
	chain(a);
	a->sample_max_stack = 4;
	a->size = PERF_ATTR_SIZE_VER5;
}

static void stack(struct perf_event_attr *a)
{
	a->sample_type |= PERF_SAMPLE_STACK_USER;
	a->sample_stack_user = 256;
}

static void software(struct perf_event_attr *a)
{
	a->type = PERF_TYPE_SOFTWARE;
	a->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	no_raw(a);
}

static void software_bare(struct perf_event_attr *a)
{
	software(a);
	no_regs(a);
}

static void records(struct perf_event_attr *a)
{
	none(a);
	no_raw(a);
	no_regs(a);
	a->context_switch = 1;
}

static void records_bare(struct perf_event_attr *a)
{
	records(a);
	a->sample_id_all = 0;
}

static const struct way ways[] = {
	{"none once more", none, NULL, false},
	{"as the program records them", same, NULL, false},
	{"  and the event of stacks, at rest", same, NULL, true},
	{"  with the kernel's own clock", kernel_clock, NULL, false},
	{"  with CLOCK_MONOTONIC_RAW", raw_clock, NULL, false},
	{"  without the time", no_time, NULL, false},
	{"  without the ids", no_tid, NULL, false},
	{"  with one register less", fewer_regs, NULL, false},
	{"  with one register", one_reg, NULL, false},
	{"  without registers", no_regs, NULL, false},
	{"  with the argument's register", argument, NULL, false},
	{"  without the payload", no_raw, NULL, false},
	{"  with the payload alone", only_raw, NULL, false},
	{"  with no field", nothing, NULL, false},
	{"  counted, not sampled", counted, NULL, false},
	{"  with the CPU", with_cpu, NULL, false},
	{"  with the kernel's address", with_ip, NULL, false},
	{"  without trailers", no_trailers, NULL, false},
	{"  with a wake-up for each 4 KiB", wakes, NULL, false},
	{"  with a wake-up for each record", wakes_each, NULL, false},
	{"  with a filter that passes all", same, "prev_pid != 1", false},
	{"  with a filter that passes none", same, "prev_pid == 1", false},
	{"  with the kernel's callchain", chain, NULL, false},
	{"  with 4 addresses of it", short_chain, NULL, false},
	{"  with 256 bytes of stack", stack, NULL, false},
	{"context-switches, ids, time, registers", software, NULL, false},
	{"context-switches, ids, time", software_bare, NULL, false},
	{"records of switches, ids, time", records, NULL, false},
	{"records of switches, no time", records_bare, NULL, false},
};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t cpu_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void echo(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

static void pass(int from, int to, int rounds)
{
	char byte = 0;

	for (int i = 0; i < rounds; i++) {
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			fail("pipe");
	}
}

struct load {
	int from, to;
	pid_t child;
	clockid_t child_clock;
};

static void start(struct load *l)
{
	int there[2], back[2];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(CPU, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 || pipe(there) < 0 || pipe(back) < 0)
		fail("load");
	l->child = fork();
	if (l->child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(there[1]);
		echo(there[0], back[1]);
	}
	l->from = back[0];
	l->to = there[1];
	if (l->child < 0 || clock_getcpuclockid(l->child, &l->child_clock) != 0)
		fail("load");
}

static double ns_of_switch(const struct load *l)
{
	uint64_t begin;

	pass(l->from, l->to, 100);
	begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(l->child_clock);
	pass(l->from, l->to, ROUNDS);
	return (double)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(l->child_clock) - begin) /
	       (2.0 * ROUNDS);
}

static struct sample_options options, blocks;
static const struct sample_features features = {
	.kernel = true, .clockid = true, .user_stack = true, .cloexec = true};

static int open_second(void)
{
	struct perf_event_attr a;
	int fd;

	event_sample_attr(&blocks, &features, -1, &a);
	a.disabled = 1;
	fd = event_open(&a, -1, CPU, true);
	if (fd < 0)
		fail("the event of stacks");
	return fd;
}

/* Nanoseconds of a switch, and how many bytes it has. */
static double measure(const struct way *w, const struct load *l, double *ret_bytes)
{
	int64_t page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t bytes = RING_BYTES, head;
	struct perf_event_attr a;
	struct ring ring;
	int fd, second;
	double ns;

	event_sample_attr(&options, &features, -1, &a);
	w->change(&a);
	a.disabled = 1;
	fd = event_open(&a, -1, CPU, true);
	if (fd < 0 || (w->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, w->filter) < 0) ||
	    ring_map(&ring, fd, &bytes, false) < 0)
		fail(w->name);
	second = w->second ? open_second() : -1;
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		fail(w->name);
	head = ring.page->data_head;
	/* touched once, as it is in a daemon */
	for (int64_t i = 0; i < RING_BYTES; i += page_bytes)
		(void)*(volatile uint8_t *)(ring.data + i);
	ns = ns_of_switch(l);
	head = __atomic_load_n(&ring.page->data_head, __ATOMIC_ACQUIRE) - head;
	if (head > RING_BYTES - 65536) {
		(void)fprintf(stderr, "%s: records were lost\n", w->name);
		exit(1);
	}
	*ret_bytes = (double)head / (2.0 * ROUNDS + 200);
	ring_unmap(&ring);
	(void)close(fd);
	if (second >= 0)
		(void)close(second);
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static const struct way nothing_at_all = {"none", none, NULL, false};
	static double more[N_WAYS][MAX_PAIRS], plain[MAX_PAIRS * N_WAYS], bytes[N_WAYS];
	int pairs = argc > 1 ? atoi(argv[1]) : 60, n_plain = 0;
	struct load load;
	char error[512];

	options = (struct sample_options){
		.use = SAMPLE_USE_SWITCHES, .period = 1, .regs_mask = sample_switch_regs(false)};
	blocks = (struct sample_options){.use = SAMPLE_USE_BLOCKS,
					 .period = 1,
					 .stack_bytes = 8192,
					 .kernel_stacks = true,
					 .regs_mask = sample_switch_regs(false)};
	if (pairs < 1 || pairs > MAX_PAIRS ||
	    sample_find_switches(&options.event, &options.switch_fields, error, sizeof(error)) <
		    0 ||
	    sample_find_switches(&blocks.event, &blocks.switch_fields, error, sizeof(error)) < 0) {
		(void)fprintf(stderr, "%s\n", error);
		return 1;
	}
	start(&load);
	srand((unsigned int)getpid());
	for (int i = 0; i < pairs; i++) {
		for (int n = 0; n < N_WAYS; n++) {
			double unused, with, without;
			bool first = rand() % 2;

			if (first)
				with = measure(&ways[n], &load, &bytes[n]);
			without = measure(&nothing_at_all, &load, &unused);
			if (!first)
				with = measure(&ways[n], &load, &bytes[n]);
			plain[n_plain++] = without;
			more[n][i] = with - without;
		}
	}
	qsort(plain, (size_t)n_plain, sizeof(double), compare);
	printf("a switch takes %.0f ns (%.0f to %.0f)\n", plain[n_plain / 2], plain[n_plain / 4],
	       plain[n_plain * 3 / 4]);
	for (int n = 0; n < N_WAYS; n++) {
		qsort(more[n], (size_t)pairs, sizeof(double), compare);
		printf("%-42s %5.0f ns more (%.0f to %.0f), %.0f bytes\n", ways[n].name,
		       more[n][pairs / 2], more[n][pairs / 4], more[n][pairs * 3 / 4], bytes[n]);
	}
	return 0;
}
