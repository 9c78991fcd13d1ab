/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benchmark of the walk against framehop and libdw's own unwinder, on this host's processes.
 *
 *   unwind-bench SECONDS [HZ [STACK_BYTES [FRAMEHOP_ADAPTER.so]]]
 *
 * Records every process by perf_event_open (root), keeps registers, stack and mappings, and replays
 * the same samples through all engines in one run:
 *
 * - first touch, ring: caches warm; each sample is copied into a 2 MB ring just before it is
 *   walked, which is what a daemon sees;
 * - hot repeat: the same sample again and again;
 * - cold: nothing compiled or cached yet, modules opened (libdw: and their CFI found).
 *
 * Where our walk is not libdw's, the code must show that libdw is wrong (tests/corpus/judge.h); it
 * fails where more than one sample in a thousand is not so.
 *
 * The engines take turns at being the first of a round. What is compared is the time of the samples
 * for which all of them find the same frames, so nobody is fast by walking less; the machine has
 * other work, so what is summed up is each sample's median over the rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/framehop.h"
#include "tests/bench/unwind-capture.h"
#include "tests/corpus/judge.h"
#include "util/clock.h"

#define REPLAY_RING (2 * 1024 * 1024)
#define HOT_REPEATS 8
#define ROUNDS	    6 /* each engine is the first twice */
#define BIG_FILE    (40 * 1024 * 1024)

enum engine { OURS, FRAMEHOP, LIBDW, N_ENGINES };
static const char *const engine_names[N_ENGINES] = {"perfwalk", "framehop", "libdw"};

struct bench {
	struct capture capture;
	struct unwinder *u;
	struct framehop framehop;
	struct framehop_cache *fh_cache;
	bool has[N_ENGINES];
	bool *agreed;		     /* by sample */
	uint16_t *n_frames;	     /* by sample, where agreed */
	enum unwind_outcome outcome; /* of our last walk */
	uint64_t undecided;	     /* samples where libdw may be right and ours is not the same */
};

/* ---- The engines ---- */

static struct unwind_frame frames[PROC_MAX_FRAMES];
static uint64_t addresses[N_ENGINES][PROC_MAX_FRAMES];
static uint8_t ring[REPLAY_RING];

static size_t walk(struct bench *b, enum engine engine, const struct sample *s,
		   const struct proc_sample *p)
{
	struct set *set = &b->capture.sets.items[s->set];
	size_t n = 0;

	switch (engine) {
	case OURS:
		b->outcome = unwind_walk(b->u, &p->regs, p->stack, p->n_stack, proc_find,
					 &set->maps, frames, PROC_MAX_FRAMES, &n);
		return n;
	case FRAMEHOP:
		return b->framehop.walk(set->fh, b->fh_cache, p->regs.r[16], p->regs.r[7],
					p->regs.r[6], p->stack, p->n_stack, addresses[FRAMEHOP],
					PROC_MAX_FRAMES);
	default:
		return oracle_walk(set->oracle, &p->regs, p->stack, p->n_stack, addresses[LIBDW],
				   PROC_MAX_FRAMES);
	}
}

static void forget_framehop(struct bench *b)
{
	for (uint32_t i = 0; i < b->capture.sets.n; i++) {
		b->framehop.process_free(b->capture.sets.items[i].fh);
		b->capture.sets.items[i].fh = NULL;
	}
	for (struct proc_module *m = b->capture.modules.list; m; m = m->next) {
		b->framehop.file_free(m->user);
		m->user = NULL;
	}
	b->framehop.cache_free(b->fh_cache);
	b->fh_cache = NULL;
}

static void make_framehop_cold(struct bench *b)
{
	const struct proc_modules *ms = &b->capture.modules;
	static struct framehop_file *vdso;

	forget_framehop(b);
	b->fh_cache = b->framehop.cache_new();
	for (struct proc_module *m = ms->list; m; m = m->next)
		m->user = b->framehop.file_new(m->fd);
	if (ms->vdso && !vdso)
		vdso = b->framehop.file_new_memory(ms->vdso, ms->n_vdso);
	for (uint32_t i = 0; i < b->capture.sets.n; i++) {
		struct set *set = &b->capture.sets.items[i];

		set->fh = b->framehop.process_new();
		for (size_t k = 0; k < set->maps.n; k++) {
			const struct proc_mapping *m = &set->maps.items[k];
			const struct framehop_file *f = m->file ? m->file->user : vdso;

			if (m->module && f)
				b->framehop.process_add(set->fh, f, m->start, m->end, m->bias);
		}
	}
}

/* Forgets everything, and opens all modules again. */
static void make_cold(struct bench *b)
{
	struct unwinder *old = b->u;

	(void)unwinder_new(&b->u, NULL);
	proc_modules_renew(&b->capture.modules, b->u);
	unwinder_free(old);
	for (uint32_t i = 0; i < b->capture.sets.n; i++) {
		struct set *set = &b->capture.sets.items[i];

		proc_maps_renew(&set->maps, &b->capture.modules);
		oracle_free(set->oracle);
		set->oracle = oracle_new_process(set->pid, set->text);
		oracle_preload(set->oracle);
	}
	if (b->has[FRAMEHOP])
		make_framehop_cold(b);
}

/* ---- Agreement ---- */

struct agreement {
	uint64_t same, shorter, longer, contradict;
};

static void compare(struct agreement *a, const uint64_t *x, size_t n, const uint64_t *y, size_t m)
{
	size_t k = 0;

	while (k < n && k < m && x[k] == y[k])
		k++;
	a->same += k == n && k == m;
	a->shorter += k == n && k < m;
	a->longer += k == m && k < n;
	a->contradict += k < n && k < m;
}

static void print_agreement(const struct agreement *a, enum engine x, enum engine y, uint32_t n)
{
	printf("%-9s %-9s %10.2f%% %8.2f%% %8.2f%% %8.2f%%\n", engine_names[x], engine_names[y],
	       100.0 * (double)a->same / n, 100.0 * (double)a->shorter / n,
	       100.0 * (double)a->longer / n, 100.0 * (double)a->contradict / n);
}

/* Where ours is not libdw's: which of them is right. */
static enum verdict judge_sample(const struct bench *b, const struct sample *s, size_t n,
				 enum unwind_outcome outcome, size_t n_theirs)
{
	const struct judge judge = {&s->s.regs,	    s->s.stack, s->s.n_stack,
				    proc_find,	    proc_read,	&b->capture.sets.items[s->set].maps,
				    PROC_MAX_FRAMES};

	return judge_walks(&judge, addresses[OURS], n, outcome, addresses[LIBDW], n_theirs);
}

static void print_place(const struct bench *b, const struct sample *s, uint64_t address)
{
	struct set *set = &b->capture.sets.items[s->set];
	struct unwind_mapping m;
	const struct proc_module *file;

	if (!proc_find(&set->maps, address, &m)) {
		printf(" [none]+%#" PRIx64, address);
		return;
	}
	file = set->maps.items[m.tag].file;
	printf(" %s+%#" PRIx64, file ? strrchr(file->path, '/') + 1 : "[no file]",
	       address - m.bias);
}

/* Both walks around where they part. */
static void print_difference(const struct bench *b, uint32_t sample, size_t n, size_t n_theirs)
{
	const struct sample *s = &b->capture.samples.items[sample];
	const uint64_t *ours = addresses[OURS], *theirs = addresses[LIBDW];
	size_t same = 0, n_of[2] = {n, n_theirs};

	while (same < n && same < n_theirs && ours[same] == theirs[same])
		same++;
	printf("sample %u: %s, %zu frames, libdw %zu, the same %zu:", sample,
	       unwind_outcome_name(b->outcome), n, n_theirs, same);
	for (size_t i = same > 2 ? same - 2 : 0; i < same; i++)
		print_place(b, s, ours[i]);
	for (int e = 0; e < 2; e++) {
		printf(e ? " | libdw:" : " | ours:");
		for (size_t i = same; i < n_of[e] && i < same + 3; i++)
			print_place(b, s, e ? theirs[i] : ours[i]);
	}
	puts("");
}

static void print_verdicts(const uint64_t verdicts[VERDICT_N], uint32_t n)
{
	printf("\nperfwalk and libdw:\n");
	for (int i = 0; i < VERDICT_N; i++) {
		if (verdicts[i])
			printf("%8" PRIu64 " %8.3f%% %s\n", verdicts[i],
			       100.0 * (double)verdicts[i] / n, verdict_names[i]);
	}
}

static void find_agreement(struct bench *b)
{
	uint64_t verdicts[VERDICT_N] = {0};
	static const enum engine pairs[][2] = {{OURS, LIBDW}, {OURS, FRAMEHOP}, {FRAMEHOP, LIBDW}};
	struct agreement sums[ARRAY_SIZE(pairs)] = {0};
	uint32_t n = b->capture.samples.n;
	uint64_t n_agreed = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct sample *s = &b->capture.samples.items[i];
		size_t found[N_ENGINES] = {0};
		enum verdict verdict;

		for (int e = 0; e < N_ENGINES; e++) {
			found[e] = b->has[e] ? walk(b, (enum engine)e, s, &s->s) : 0;
			for (size_t k = 0; e == OURS && k < found[e]; k++)
				addresses[OURS][k] = frames[k].address;
		}
		verdict = judge_sample(b, s, found[OURS], b->outcome, found[LIBDW]);
		verdicts[verdict]++;
		if (verdict == VERDICT_UNDECIDED)
			print_difference(b, i, found[OURS], found[LIBDW]);
		b->agreed[i] = found[OURS] > 0;
		for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
			enum engine x = pairs[p][0], y = pairs[p][1];
			uint64_t same = sums[p].same;

			if (!b->has[x] || !b->has[y])
				continue;
			compare(&sums[p], addresses[x], found[x], addresses[y], found[y]);
			b->agreed[i] &= sums[p].same > same;
		}
		b->n_frames[i] = (uint16_t)found[OURS];
		n_agreed += b->agreed[i];
	}
	print_verdicts(verdicts, n);
	b->undecided = verdicts[VERDICT_UNDECIDED];
	printf("\n%-19s %11s %9s %9s %9s\n", "the first finds", "the same", "less", "more",
	       "other");
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		if (b->has[pairs[p][0]] && b->has[pairs[p][1]])
			print_agreement(&sums[p], pairs[p][0], pairs[p][1], n);
	}
	printf("all the same: %.2f%% of the samples; they are what is timed\n",
	       100.0 * (double)n_agreed / n);
}

/* ---- Time ---- */

struct times {
	uint32_t *ns[N_ENGINES]; /* [round][sample] */
	uint32_t *median[N_ENGINES];
};

/* A sample's stack in the ring, as if the kernel had just written it. */
static void copy_in(struct proc_sample *s, size_t *at)
{
	if (*at + s->n_stack > sizeof(ring))
		*at = 0;
	memcpy(ring + *at, s->stack, s->n_stack);
	s->stack = ring + *at;
	*at += (s->n_stack + 63) & ~(size_t)63;
}

static void replay(struct bench *b, enum engine engine, bool in_ring, unsigned int repeats,
		   uint32_t *ns)
{
	size_t at = 0;

	for (uint32_t i = 0; i < b->capture.samples.n; i++) {
		const struct sample *s = &b->capture.samples.items[i];
		struct proc_sample p = s->s;
		uint64_t start, took;

		if (in_ring)
			copy_in(&p, &at);
		if (repeats > 1)
			(void)walk(b, engine, s, &p);
		start = clock_monotonic_ns();
		for (unsigned int k = 0; k < repeats; k++)
			(void)walk(b, engine, s, &p);
		took = (clock_monotonic_ns() - start) / repeats;
		ns[i] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
	}
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void find_medians(struct times *t, enum engine e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v[ROUNDS];

		for (unsigned int r = 0; r < ROUNDS; r++)
			v[r] = t->ns[e][(size_t)r * n + i];
		qsort(v, ROUNDS, sizeof(v[0]), compare_u32);
		t->median[e][i] = v[ROUNDS / 2];
	}
}

static double per_frame(const struct bench *b, const uint32_t *ns)
{
	double sum = 0, n_frames = 0;

	for (uint32_t i = 0; i < b->capture.samples.n; i++) {
		if (b->agreed[i]) {
			sum += ns[i];
			n_frames += b->n_frames[i];
		}
	}
	return n_frames > 0 ? sum / n_frames : 0;
}

static void measure(struct bench *b, struct times *t, const char *mode, bool cold, bool in_ring,
		    unsigned int repeats)
{
	uint32_t n = b->capture.samples.n;
	double ns[N_ENGINES] = {0};

	for (unsigned int r = 0; r < ROUNDS; r++) {
		if (cold)
			make_cold(b);
		for (unsigned int k = 0; k < N_ENGINES; k++) {
			enum engine e = (enum engine)((r + k) % N_ENGINES);

			if (b->has[e])
				replay(b, e, in_ring, repeats, t->ns[e] + (size_t)r * n);
		}
	}
	for (int e = 0; e < N_ENGINES; e++) {
		if (!b->has[e])
			continue;
		find_medians(t, (enum engine)e, n);
		ns[e] = per_frame(b, t->median[e]);
	}
	printf("%-18s %9.1f %9.1f %9.1f %9.1f x %9.1f x\n", mode, ns[OURS], ns[FRAMEHOP], ns[LIBDW],
	       ns[FRAMEHOP] / ns[OURS], ns[LIBDW] / ns[OURS]);
}

/* ---- What a single sample may take ---- */

static const struct proc_module *file_of(const struct bench *b, uint32_t sample)
{
	const struct sample *s = &b->capture.samples.items[sample];
	struct unwind_mapping m;
	struct set *set = &b->capture.sets.items[s->set];

	if (!proc_find(&set->maps, s->s.regs.r[16], &m))
		return NULL;
	return set->maps.items[m.tag].file;
}

static void print_worst(const struct bench *b, const struct times *t)
{
	uint32_t n = b->capture.samples.n;

	printf("\ncold, microseconds a sample:\n%-34s %9s %9s %9s\n", "", engine_names[OURS],
	       engine_names[FRAMEHOP], engine_names[LIBDW]);
	printf("%-34s", "the slowest of all");
	for (int e = 0; e < N_ENGINES; e++) {
		uint32_t worst = 0;

		for (uint32_t i = 0; b->has[e] && i < n; i++)
			worst = t->median[e][i] > worst ? t->median[e][i] : worst;
		printf(" %9.1f", worst / 1e3);
	}
	for (const struct proc_module *m = b->capture.modules.list; m; m = m->next) {
		const char *name = strrchr(m->path, '/');
		uint32_t first = 0;

		while (m->size >= BIG_FILE && first < n && file_of(b, first) != m)
			first++;
		if (m->size < BIG_FILE || first == n)
			continue;
		printf("\nfirst in %-17.17s %4" PRIu64 " MB", name ? name + 1 : m->path,
		       m->size >> 20);
		for (int e = 0; e < N_ENGINES; e++)
			printf(" %9.1f", b->has[e] ? t->median[e][first] / 1e3 : 0.0);
	}
	puts("");
}

static void print_memory(const struct bench *b)
{
	const struct unwind_stats *st = unwinder_stats(b->u);
	uint64_t hits = 0, misses = 0;

	printf("\nafter one cold pass: perfwalk's cache hits %.2f%%, %" PRIu64
	       " rows compiled, %" PRIu64 " evicted, %.2f MB of rows and indexes, %.2f MB of "
	       "cache\n",
	       100.0 * (double)st->cache_hits / (double)(st->cache_hits + st->cache_misses + 1),
	       st->rows_compiled, st->rows_evicted, (double)st->row_bytes / 1e6,
	       (double)(UINT64_C(65536) * 16) / 1e6);
	if (b->has[FRAMEHOP]) {
		b->framehop.cache_stats(b->fh_cache, &hits, &misses);
		printf("framehop's cache hits %.2f%%\n",
		       100.0 * (double)hits / (double)(hits + misses + 1));
	}
}

static void print_outcomes(const struct bench *b)
{
	const struct unwind_stats *st = unwinder_stats(b->u);

	printf("\nperfwalk, all samples: ");
	for (unsigned int i = 0; i < UNWIND_N_OUTCOMES; i++)
		printf("%s %.2f%%, ", unwind_outcome_name(i),
		       100.0 * (double)st->outcomes[i] / (double)st->walks);
	printf("%.1f frames a sample\n", (double)st->frames / (double)st->walks);
}

/* ---- */

static bool make_room(struct bench *b, struct times *t)
{
	uint32_t n = b->capture.samples.n;
	bool good;

	b->agreed = calloc(n, sizeof(*b->agreed));
	b->n_frames = calloc(n, sizeof(*b->n_frames));
	good = b->agreed && b->n_frames;
	for (int e = 0; e < N_ENGINES; e++) {
		t->ns[e] = calloc((size_t)n * ROUNDS, sizeof(uint32_t));
		t->median[e] = calloc(n, sizeof(uint32_t));
		good = good && t->ns[e] && t->median[e];
	}
	return good;
}

static int run(struct bench *b)
{
	struct times t;
	uint32_t n = b->capture.samples.n;

	if (n < 100 || !make_room(b, &t)) {
		fprintf(stderr, "unwind-bench: only %u samples\n", n);
		return 1;
	}
	printf("%u samples, %u sets of mappings, %" PRIu64 " without maps, %" PRIu64
	       " times records were lost\n",
	       n, b->capture.sets.n, b->capture.no_maps, b->capture.lost);
	make_cold(b);
	find_agreement(b);
	print_outcomes(b);
	printf("\n%-18s %9s %9s %9s   ns a frame; perfwalk is faster by\n", "", engine_names[OURS],
	       engine_names[FRAMEHOP], engine_names[LIBDW]);
	measure(b, &t, "first touch, ring", false, true, 1);
	measure(b, &t, "hot repeat", false, false, HOT_REPEATS);
	measure(b, &t, "cold", true, false, 1);
	print_memory(b);
	print_worst(b, &t);
	if (b->undecided * 1000 > n) {
		fprintf(stderr,
			"unwind-bench: in %" PRIu64
			" samples of %u libdw may be right against us\n",
			b->undecided, n);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 10;
	unsigned int hz = argc > 2 ? (unsigned int)atoi(argv[2]) : 199;
	unsigned int stack_bytes = argc > 3 ? (unsigned int)atoi(argv[3]) : 65528;
	static struct bench b = {.capture = CAPTURE_INIT, .has = {[OURS] = true, [LIBDW] = true}};
	int r;

	if (argc > 4 && !framehop_load(&b.framehop, argv[4]))
		return 1;
	b.has[FRAMEHOP] = b.framehop.library != NULL;
	r = unwinder_new(&b.u, NULL);
	b.capture.modules.u = b.u;
	if (r == 0)
		r = capture_record(&b.capture, seconds, hz, stack_bytes);
	if (r < 0) {
		fprintf(stderr, "unwind-bench: cannot sample this host: %s\n", strerror(-r));
		return 1;
	}
	return run(&b);
}
