/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch-pairs-bench ROUNDS: what perfwalk does for each context switch of a busy CPU, from the
 * bytes of its ring to the time of threads: read, merge, decode, pair, add up. A kernel of ours has
 * written the ring: two threads wake each other by pipes, as in switches.c. Prints nanoseconds of
 * CPU time a switch. The instructions of one are the difference between runs of more and of fewer
 * rounds:
 *
 *     for n in 10 20; do valgrind --tool=callgrind --callgrind-out-file=/dev/null \
 *         tests/bench/switch-pairs-bench $n; done
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/process/filter.h"
#include "src/profiler/attribute.h"
#include "src/sample/merge.h"
#include "src/sample/sample.h"

/* The ring holds all rounds, and wraps in none. */
enum { RING_BYTES = 64 << 20, SWITCHES = 10000, MAX_ROUNDS = 40, EVENT = 1 };
/* Nanoseconds between two switches; a record that is older than this is not on its way any more, as
 * in the profiler. */
enum { APART = 5000, SETTLED = 10000000 };

/* As Linux 6.18 has it. */
struct payload {
	uint64_t common;
	char prev_comm[16];
	int32_t prev_pid, prev_prio;
	int64_t prev_state;
	char next_comm[16];
	int32_t next_pid, next_prio;
	uint32_t end;
} __attribute__((packed));

static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers */
static struct filter filter;
static struct setup_profiler setup;

static void *or_exit(const char *what, void *p)
{
	if (p && p != MAP_FAILED)
		return p;
	perror(what);
	exit(1);
}

static void set_up(struct sample_options *o, enum sample_use use)
{
	*o = (struct sample_options){.index = use == SAMPLE_USE_SWITCHES,
				     .use = use,
				     .period = 1,
				     .regs_mask = sample_switch_regs(false)};
	o->switch_fields.prev_pid = (struct tracepoint_field){24, 4, true};
	o->switch_fields.prev_state = (struct tracepoint_field){32, 8, true};
	o->switch_fields.next_pid = (struct tracepoint_field){56, 4, true};
}

/* A switch from one of two threads to the other; n: bytes so far. */
static size_t put_switch(uint8_t *data, size_t n, uint32_t from, uint32_t to, uint64_t time_ns)
{
	const struct payload payload = {
		.prev_pid = (int32_t)from, .prev_state = 1, .next_pid = (int32_t)to};
	const uint64_t regs = (uint64_t)__builtin_popcountll(sample_switch_regs(false));
	const size_t size = 8 + 16 + 4 + sizeof(payload) + 8 * (1 + regs);
	const struct perf_event_header h = {.type = PERF_RECORD_SAMPLE,
					    .misc = PERF_RECORD_MISC_KERNEL,
					    .size = (uint16_t)size};
	const uint32_t ids[] = {from, from}, n_raw = sizeof(payload);
	uint8_t *at = data + n;

	memcpy(at, &h, sizeof(h));
	memcpy(at + 8, ids, sizeof(ids));
	memcpy(at + 16, &time_ns, sizeof(time_ns));
	memcpy(at + 24, &n_raw, sizeof(n_raw));
	memcpy(at + 28, &payload, sizeof(payload));
	at += 28 + sizeof(payload);
	for (uint64_t i = 0, word = PERF_SAMPLE_REGS_ABI_64; i <= regs; i++, word = 0x7fff00000000)
		memcpy(at + 8 * i, &(uint64_t){i ? word + from * 4096 : word}, sizeof(word));
	return n + size;
}

static struct perf_event_mmap_page *make_ring(struct merger *m, uint64_t *ret_heads)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct perf_event_mmap_page *page;
	uint64_t bytes = RING_BYTES;
	size_t n = 0;
	struct ring ring;

	if (fd < 0 || ftruncate(fd, (off_t)(page_bytes + bytes)) < 0)
		or_exit("memfd", NULL);
	page = or_exit("mmap",
		       mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	for (uint32_t i = 0; i < SWITCHES * MAX_ROUNDS; i++) {
		n = put_switch((uint8_t *)page + page_bytes, n, 100 + i % 2, 101 - i % 2,
			       UINT64_C(1) * APART * (i + 1));
		if ((i + 1) % SWITCHES == 0)
			ret_heads[i / SWITCHES] = n;
	}
	if (n > RING_BYTES || ring_map(&ring, fd, &bytes, false) < 0)
		or_exit("ring", NULL);
	ring.fd = -1;
	if (merger_add_ring(m, 0, EVENT, &ring) < 0)
		or_exit("merger", NULL);
	return page;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const struct sample_features features = {.clockid = true, .comm_exec = true};
	uint64_t heads[MAX_ROUNDS], begin, n = 0;
	int rounds = argc > 1 ? atoi(argv[1]) : MAX_ROUNDS;
	struct perf_event_mmap_page *page;
	struct attribution *a;
	struct merger *m;
	struct record r;

	setup = (struct setup_profiler){.n_events = 2,
					.window_memory_bytes = 1 << 20,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	set_up(&setup.events[0].options, SAMPLE_USE_BLOCKS);
	set_up(&setup.events[EVENT].options, SAMPLE_USE_SWITCHES);
	setup.events[0].features = setup.events[EVENT].features = features;
	if (rounds < 1 || rounds > MAX_ROUNDS ||
	    attribution_new(&a, &role, &ask, &setup, &filter, NULL) < 0 ||
	    merger_new(&m, &setup.events[0].options, &features) < 0 ||
	    merger_add_event(m, &setup.events[EVENT].options, &features) < 0)
		return 1;
	page = make_ring(m, heads);
	begin = cpu_ns();
	for (int i = 0; i < rounds; i++) {
		__atomic_store_n(&page->data_head, heads[i], __ATOMIC_RELEASE);
		merger_begin(m, (uint64_t)(i + 1) * SWITCHES * APART - SETTLED);
		attribution_begin(a);
		for (; merger_next(m, &r); n++)
			(void)attribution_record(a, &r);
	}
	printf("%.1f ns of CPU time a switch, %llu switches\n",
	       (double)(cpu_ns() - begin) / (double)n, (unsigned long long)n);
	attribution_free(a);
	merger_free(m);
	return 0;
}
