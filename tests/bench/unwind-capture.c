/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "src/sample/sample.h"
#include "tests/bench/unwind-capture.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/hash.h"

#define RING_PAGES 512
#define MAX_CPUS   64
#define REGS_MASK  sample_user_regs
#define MAX_MAPS   (1 << 18)

struct rings {
	int fds[MAX_CPUS];
	struct perf_event_mmap_page *pages[MAX_CPUS];
	unsigned int n;
};

static int open_rings(struct rings *rings, unsigned int hz, unsigned int stack_bytes)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGS_MASK,
		.sample_stack_user = stack_bytes,
		.wakeup_events = 1,
		.exclude_kernel = 1,
	};
	long page = sysconf(_SC_PAGESIZE);

	rings->n = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (rings->n > MAX_CPUS)
		rings->n = MAX_CPUS;
	for (unsigned int i = 0; i < rings->n; i++) {
		rings->fds[i] = (int)syscall(SYS_perf_event_open, &attr, -1, (int)i, -1,
					     PERF_FLAG_FD_CLOEXEC);
		if (rings->fds[i] < 0)
			return -errno;
		rings->pages[i] = mmap(NULL, (size_t)page * (RING_PAGES + 1),
				       PROT_READ | PROT_WRITE, MAP_SHARED, rings->fds[i], 0);
		if (rings->pages[i] == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static char *read_maps(pid_t pid)
{
	char path[64];
	_cleanup_free_ char *text = malloc(MAX_MAPS);
	size_t n = 0, got;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	if (!f || !text)
		return NULL;
	while (n < MAX_MAPS - 1 && (got = fread(text + n, 1, MAX_MAPS - 1 - n, f)) > 0)
		n += got;
	fclose(f);
	text[n] = '\0';
	return n ? TAKE_PTR(text) : NULL;
}

static uint32_t find_set(struct capture *c, pid_t pid)
{
	_cleanup_free_ char *text = read_maps(pid);
	struct set *set;
	uint64_t hash;

	if (!text)
		return UINT32_MAX;
	hash = hash_bytes(text, strlen(text), (uint64_t)pid);
	for (uint32_t i = c->sets.n; i-- > 0;) {
		if (c->sets.items[i].pid == pid && c->sets.items[i].hash == hash)
			return i;
	}
	set = array_push(&c->sets);
	if (!set)
		return UINT32_MAX;
	set->pid = pid;
	set->hash = hash;
	set->text = TAKE_PTR(text);
	/* Opened now, while the process lives. */
	(void)proc_maps_load(&set->maps, &c->modules, pid, set->text);
	return c->sets.n - 1;
}

static void take_record(struct capture *capture, const uint8_t *data, size_t n)
{
	struct cursor c = cursor_make(data, n);
	uint64_t regs[64], abi, size, dyn_size;
	struct sample *s;
	const uint8_t *stack;
	uint32_t pid, set;

	pid = cursor_u32(&c);
	(void)cursor_u32(&c);
	abi = cursor_u64(&c);
	if (abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	cursor_read(&c, regs, (size_t)__builtin_popcountll(REGS_MASK) * 8);
	size = cursor_u64(&c);
	stack = cursor_take(&c, (size_t)size);
	dyn_size = size ? cursor_u64(&c) : 0;
	if (!cursor_ok(&c) || dyn_size > size || pid == (uint32_t)getpid())
		return;
	set = find_set(capture, (pid_t)pid);
	if (set == UINT32_MAX) {
		capture->no_maps++;
		return;
	}
	s = array_push(&capture->samples);
	if (!s)
		return;
	s->set = set;
	unwind_regs_from_perf(regs, REGS_MASK, &s->s.regs);
	s->s.n_stack = (size_t)dyn_size;
	s->s.stack = malloc(dyn_size ? (size_t)dyn_size : 1);
	memcpy((void *)(uintptr_t)s->s.stack, stack, (size_t)dyn_size);
}

static void drain(struct capture *c, struct perf_event_mmap_page *ring)
{
	static uint8_t record[1 << 16];
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), tail = ring->data_tail;
	const uint8_t *data = (const uint8_t *)ring + ring->data_offset;

	while (tail < head) {
		uint64_t at = tail % ring->data_size, first = ring->data_size - at;
		struct perf_event_header h;

		memcpy(&h, data + at, sizeof(h)); /* 8 bytes at a multiple of 8 */
		if (first > h.size)
			first = h.size;
		memcpy(record, data + at, first);
		memcpy(record + first, data, h.size - first);
		if (h.type == PERF_RECORD_SAMPLE)
			take_record(c, record + sizeof(h), h.size - sizeof(h));
		else if (h.type == PERF_RECORD_LOST)
			c->lost++;
		tail += h.size;
		__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
	}
}

int capture_record(struct capture *c, unsigned int seconds, unsigned int hz,
		   unsigned int stack_bytes)
{
	uint64_t end = clock_monotonic_ns() + seconds * NSEC_PER_SEC;
	struct pollfd fds[MAX_CPUS];
	struct rings rings;
	int r = open_rings(&rings, hz, stack_bytes);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < rings.n; i++)
		fds[i] = (struct pollfd){.fd = rings.fds[i], .events = POLLIN};
	while (clock_monotonic_ns() < end) {
		(void)poll(fds, rings.n, 100);
		for (unsigned int i = 0; i < rings.n; i++)
			drain(c, rings.pages[i]);
	}
	for (unsigned int i = 0; i < rings.n; i++)
		(void)close(rings.fds[i]);
	return 0;
}
