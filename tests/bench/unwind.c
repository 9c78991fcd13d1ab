/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benchmark of the walk against libdw's own unwinder, on this host's processes.
 *
 *	unwind-bench SECONDS [HZ [STACK_BYTES]]
 *
 * Records every process by perf_event_open (root), keeps registers, stack and mappings, and replays
 *the same samples through both in one run:
 *
 *	cold               nothing compiled or cached yet, modules opened (libdw: and their CFI
 *found) first touch, ring  caches warm; each sample is copied into a 2 MB ring just before it is
 *	                   walked: what a daemon sees
 *	hot repeat         the same sample again and again
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/unit/unwind-proc.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/hash.h"

#define RING_PAGES  256
#define REPLAY_RING (2 * 1024 * 1024)
#define MAX_SAMPLES 30000
#define MAX_CPUS    64
#define HOT_REPEATS 8
#define ROUNDS	    5
#define REGS_MASK   unwind_perf_regs_mask

struct sample {
	struct proc_sample s;
	uint32_t set;
};

/* One process at one state of its mappings. */
struct set {
	pid_t pid;
	uint64_t hash;
	char *text;
	struct proc_maps maps;
	struct dw_process *dw;
};

struct bench {
	int fds[MAX_CPUS];
	struct perf_event_mmap_page *rings[MAX_CPUS];
	unsigned int n_cpus;
	uint64_t lost, no_maps;
	ARRAY(struct sample) samples;
	ARRAY(struct set) sets;
	struct unwinder *u;
	struct proc_modules modules;
};

/* Recording */

static int open_rings(struct bench *b, unsigned int hz, unsigned int stack_bytes)
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

	b->n_cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (b->n_cpus > MAX_CPUS)
		b->n_cpus = MAX_CPUS;
	for (unsigned int i = 0; i < b->n_cpus; i++) {
		b->fds[i] = (int)syscall(SYS_perf_event_open, &attr, -1, (int)i, -1,
					 PERF_FLAG_FD_CLOEXEC);
		if (b->fds[i] < 0)
			return -errno;
		b->rings[i] = mmap(NULL, (size_t)page * (RING_PAGES + 1), PROT_READ | PROT_WRITE,
				   MAP_SHARED, b->fds[i], 0);
		if (b->rings[i] == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static char *read_maps(pid_t pid)
{
	char path[64];
	_cleanup_free_ char *text = malloc(1 << 18);
	size_t n = 0, got;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	while (n < (1 << 18) - 1 && (got = fread(text + n, 1, (1 << 18) - 1 - n, f)) > 0)
		n += got;
	fclose(f);
	text[n] = '\0';
	return n ? TAKE_PTR(text) : NULL;
}

static uint32_t find_set(struct bench *b, pid_t pid)
{
	_cleanup_free_ char *text = read_maps(pid);
	struct set *set;
	uint64_t hash;

	if (!text)
		return UINT32_MAX;
	hash = hash_bytes(text, strlen(text), (uint64_t)pid);
	for (uint32_t i = b->sets.n; i-- > 0;) {
		if (b->sets.items[i].pid == pid && b->sets.items[i].hash == hash)
			return i;
	}
	set = array_push(&b->sets);
	if (!set)
		return UINT32_MAX;
	set->pid = pid;
	set->hash = hash;
	set->text = TAKE_PTR(text);
	/* Opened now, while the process lives. */
	(void)proc_maps_load(&set->maps, &b->modules, pid, set->text);
	set->dw = dw_process_new(pid, set->text);
	return b->sets.n - 1;
}

static void take_record(struct bench *b, const uint8_t *data, size_t n)
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
	set = find_set(b, (pid_t)pid);
	if (set == UINT32_MAX) {
		b->no_maps++;
		return;
	}
	s = array_push(&b->samples);
	if (!s)
		return;
	s->set = set;
	unwind_regs_from_perf(regs, REGS_MASK, &s->s.regs);
	s->s.n_stack = (size_t)dyn_size;
	s->s.stack = malloc(dyn_size ? (size_t)dyn_size : 1);
	memcpy((void *)(uintptr_t)s->s.stack, stack, (size_t)dyn_size);
}

static void drain(struct bench *b, struct perf_event_mmap_page *ring)
{
	static uint8_t record[1 << 16];
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), tail = ring->data_tail;
	const uint8_t *data = (const uint8_t *)ring + ring->data_offset;

	while (tail < head) {
		struct perf_event_header h;

		for (size_t i = 0; i < sizeof(h); i++)
			((uint8_t *)&h)[i] = data[(tail + i) % ring->data_size];
		for (size_t i = 0; i < h.size; i++)
			record[i] = data[(tail + i) % ring->data_size];
		if (h.type == PERF_RECORD_SAMPLE)
			take_record(b, record + sizeof(h), h.size - sizeof(h));
		else if (h.type == PERF_RECORD_LOST)
			b->lost++;
		tail += h.size;
		__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static void record(struct bench *b, unsigned int seconds)
{
	uint64_t end = clock_monotonic_ns() + seconds * NSEC_PER_SEC;
	struct pollfd fds[MAX_CPUS];

	for (unsigned int i = 0; i < b->n_cpus; i++)
		fds[i] = (struct pollfd){.fd = b->fds[i], .events = POLLIN};
	while (clock_monotonic_ns() < end) {
		(void)poll(fds, b->n_cpus, 100);
		for (unsigned int i = 0; i < b->n_cpus; i++)
			drain(b, b->rings[i]);
	}
	for (unsigned int i = 0; i < b->n_cpus; i++)
		(void)close(b->fds[i]);
}

/* Replay */

static struct unwind_frame frames[PROC_MAX_FRAMES];
static uint64_t addresses[PROC_MAX_FRAMES];
static uint8_t ring[REPLAY_RING];

/* A sample's stack in the ring, as if the kernel had just written it. */
static void copy_in(struct proc_sample *s, size_t *at)
{
	if (*at + s->n_stack > sizeof(ring))
		*at = 0;
	memcpy(ring + *at, s->stack, s->n_stack);
	s->stack = ring + *at;
	*at += (s->n_stack + 63) & ~(size_t)63;
}

static size_t walk_ours(struct bench *b, const struct sample *s, const struct proc_sample *p)
{
	size_t n;

	(void)unwind_walk(b->u, &p->regs, p->stack, p->n_stack, proc_find,
			  &b->sets.items[s->set].maps, frames, PROC_MAX_FRAMES, &n);
	return n;
}

static size_t walk_libdw(struct bench *b, const struct sample *s, const struct proc_sample *p)
{
	return dw_process_walk(b->sets.items[s->set].dw, p, addresses);
}

typedef size_t (*walk_fn)(struct bench *b, const struct sample *s, const struct proc_sample *p);

/*
 * What each sample took in each round. The machine has other work, so what is summed up is each
 * sample's median over the rounds.
 */
struct times {
	uint32_t *ns; /* [round][sample] */
	uint64_t frames;
};

static void replay(struct bench *b, walk_fn walk, bool in_ring, unsigned int repeats, uint32_t *ns,
		   uint64_t *ret_frames)
{
	size_t at = 0;

	*ret_frames = 0;
	for (uint32_t i = 0; i < b->samples.n; i++) {
		const struct sample *s = &b->samples.items[i];
		struct proc_sample p = s->s;
		uint64_t start, took;
		size_t n = 0;

		if (in_ring)
			copy_in(&p, &at);
		if (repeats > 1)
			(void)walk(b, s, &p);
		start = clock_monotonic_ns();
		for (unsigned int k = 0; k < repeats; k++)
			n = walk(b, s, &p);
		took = (clock_monotonic_ns() - start) / repeats;
		ns[i] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
		*ret_frames += n;
	}
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double per_frame(const struct times *t, uint32_t n, unsigned int rounds)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t v[ROUNDS];

		for (unsigned int r = 0; r < rounds; r++)
			v[r] = t->ns[(size_t)r * n + i];
		qsort(v, rounds, sizeof(v[0]), compare_u32);
		sum += v[rounds / 2];
	}
	return t->frames ? sum / (double)t->frames : 0;
}

/* Forgets everything, and opens all modules again. */
static void make_cold(struct bench *b)
{
	for (uint32_t i = 0; i < b->sets.n; i++)
		proc_maps_deinit(&b->sets.items[i].maps);
	proc_modules_deinit(&b->modules);
	b->modules = (struct proc_modules){.u = NULL};
	unwinder_free(b->u);
	(void)unwinder_new(&b->u, NULL);
	b->modules.u = b->u;
	for (uint32_t i = 0; i < b->sets.n; i++) {
		struct set *set = &b->sets.items[i];

		(void)proc_maps_load(&set->maps, &b->modules, set->pid, set->text);
		dw_process_free(set->dw);
		set->dw = dw_process_new(set->pid, set->text);
		dw_process_preload(set->dw);
	}
}

static void measure(struct bench *b, const char *mode, bool cold, bool in_ring,
		    unsigned int repeats, unsigned int rounds)
{
	uint32_t n = b->samples.n;
	struct times ours = {calloc((size_t)n * ROUNDS, sizeof(uint32_t)), 0};
	struct times libdw = {calloc((size_t)n * ROUNDS, sizeof(uint32_t)), 0};
	double a, c;

	for (unsigned int r = 0; r < rounds && ours.ns && libdw.ns; r++) {
		if (cold)
			make_cold(b);
		replay(b, walk_ours, in_ring, repeats, ours.ns + (size_t)r * n, &ours.frames);
		replay(b, walk_libdw, in_ring, repeats, libdw.ns + (size_t)r * n, &libdw.frames);
	}
	a = per_frame(&ours, n, rounds);
	c = per_frame(&libdw, n, rounds);
	printf("%-18s %9.1f %9.1f   %6.1f x\n", mode, a, c, a > 0 ? c / a : 0);
	free(ours.ns);
	free(libdw.ns);
}

static void print_agreement(struct bench *b)
{
	uint64_t same = 0, ours_shorter = 0, libdw_shorter = 0, contradict = 0;

	for (uint32_t i = 0; i < b->samples.n; i++) {
		const struct sample *s = &b->samples.items[i];
		size_t n = walk_ours(b, s, &s->s), m = walk_libdw(b, s, &s->s), k = 0;

		while (k < n && k < m && frames[k].address == addresses[k])
			k++;
		same += k == n && k == m;
		ours_shorter += k == n && k < m;
		libdw_shorter += k == m && k < n;
		contradict += k < n && k < m;
	}
	printf("agreement: identical %.2f%%, ours shorter %.2f%%, libdw shorter %.2f%%, contradict "
	       "%.2f%%\n",
	       100.0 * (double)same / b->samples.n, 100.0 * (double)ours_shorter / b->samples.n,
	       100.0 * (double)libdw_shorter / b->samples.n,
	       100.0 * (double)contradict / b->samples.n);
}

static void print_counters(const struct unwind_stats *st, const char *when)
{
	printf("%s: cache hits %.2f%%, rows compiled %" PRIu64 ", evicted %" PRIu64
	       ", row bytes %" PRIu64 "\n",
	       when,
	       100.0 * (double)st->cache_hits / (double)(st->cache_hits + st->cache_misses + 1),
	       st->rows_compiled, st->rows_evicted, st->row_bytes);
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 10;
	unsigned int hz = argc > 2 ? (unsigned int)atoi(argv[2]) : 199;
	unsigned int stack_bytes = argc > 3 ? (unsigned int)atoi(argv[3]) : 65528;
	static struct bench b = {.samples = ARRAY_INIT(MAX_SAMPLES), .sets = ARRAY_INIT(8192)};
	uint32_t n;
	int r;

	r = unwinder_new(&b.u, NULL);
	b.modules.u = b.u;
	if (r == 0)
		r = open_rings(&b, hz, stack_bytes);
	if (r < 0) {
		fprintf(stderr, "unwind-bench: cannot sample this host: %s\n", strerror(-r));
		return 1;
	}
	record(&b, seconds);
	n = b.samples.n;
	if (n < 100) {
		fprintf(stderr, "unwind-bench: only %u samples\n", n);
		return 1;
	}
	printf("%u samples, %u sets of mappings, %" PRIu64 " without maps, %" PRIu64
	       " times records were lost\n",
	       n, b.sets.n, b.no_maps, b.lost);
	printf("%-18s %9s %9s   ns a frame, each sample's median of %u rounds\n", "", "perfwalk",
	       "libdw", ROUNDS);
	measure(&b, "cold", true, false, 1, 3);
	print_counters(unwinder_stats(b.u), "  one pass");
	measure(&b, "first touch, ring", false, true, 1, ROUNDS);
	measure(&b, "hot repeat", false, false, HOT_REPEATS, ROUNDS);
	print_agreement(&b);
	for (unsigned int i = 0; i < UNWIND_N_OUTCOMES; i++)
		printf("%s %.2f%%%s", unwind_outcome_name(i),
		       100.0 * (double)unwinder_stats(b.u)->outcomes[i] /
			       (double)unwinder_stats(b.u)->walks,
		       i + 1 < UNWIND_N_OUTCOMES ? ", " : "\n");
	printf("frames %.1f a sample\n",
	       (double)unwinder_stats(b.u)->frames / (double)unwinder_stats(b.u)->walks);
	return 0;
}
