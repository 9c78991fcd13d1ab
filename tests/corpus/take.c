/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records samples of a program for the unwinder's corpus (make.sh runs it):
 *
 *	take [-n SAMPLES] [-i MS] [-m MODULE] [-w MODULE] [-l LABEL] -o FILE -e EXPECTED -- CMD...
 *
 * The program is run under ptrace. Between two `int3` instructions of a thread that thread is
 * stepped instruction by instruction; with -i all threads are stopped every so often instead. A
 *stop becomes a sample when its shape is new: the row of call-frame information that its pc is in,
 *and how the walk ended. -m: only with the pc in a module whose name begins so; -w: only with such
 *a module among the callers' ("[anonymous]" for code without a file). -r: what only libdw reads is
 *left out, for files without a search table, which it reads from end to end.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/corpus/take.h"
#include "tests/unit/unwind-proc.h"
#include "util/clock.h"
#include "util/hash.h"

enum { MAX_THREADS = 256, MAX_SHAPES = 4096, MAX_STEPS = 400000, MAX_TIME_S = 60 };

struct thread {
	pid_t tid;
	bool stepping, asked;
};

struct recorder {
	struct take t;
	pid_t pid;
	struct thread threads[MAX_THREADS];
	unsigned int n_threads;
	uint64_t steps, interval_ns, next_ns, end_ns;
	const char *innermost, *among;
	uint32_t max_samples;
	int32_t maps; /* of the last look; -1: look again */
};

/* ---- Is it worth keeping? ---- */

static bool is_module(struct take *t, uint64_t address, const char *prefix)
{
	struct unwind_mapping m;
	const char *name;

	if (!take_find(t, address, &m))
		return false;
	if (!m.module)
		return strcmp(prefix, "[anonymous]") == 0;
	name = strrchr(m.module->name, '/');
	return strncmp(name ? name + 1 : m.module->name, prefix, strlen(prefix)) == 0;
}

static bool is_wanted(struct recorder *r, const struct unwind_frame *frames, size_t n)
{
	bool among = !r->among, in_file = false;

	for (size_t i = 0; i < n && !in_file; i++)
		in_file = !is_module(&r->t, frames[i].address, "[anonymous]");
	if (!in_file)
		return false;
	if (r->innermost && !is_module(&r->t, frames[0].address, r->innermost))
		return false;
	for (size_t i = 1; i < n && !among; i++)
		among = is_module(&r->t, frames[i].address, r->among);
	return among;
}

static void describe(struct take *t, struct take_sample *s)
{
	uint64_t pc = s->regs.r[ARCH_REG_PC];
	struct unwind_mapping m;
	static struct full_rule full;
	struct row row = {.start = 0};

	s->key = (uint64_t)s->outcome;
	s->special = true;
	if (!take_find(t, pc, &m) || !m.module || pc - m.bias - m.module->base >= m.module->span)
		return;
	t->u->work = 0;
	cfi_compile_row(m.module, pc - m.bias, &row);
	s->key ^= (uint64_t)m.module->id << 40 ^ (uint64_t)row.start << 8;
	/* Not from call-frame information, or not in a row's compact form. */
	s->special = (row.rule.kind != RULE_SP && row.rule.kind != RULE_FP) ||
		     cfi_compile_full(m.module, pc - m.bias, &full) != 0;
	/* Of stubs and the like each instruction is another case. */
	if (s->special)
		s->key ^= hash_u64(pc);
}

static bool is_known(const struct take *t, uint64_t key)
{
	for (uint32_t i = 0; i < t->samples.n; i++) {
		if (t->samples.items[i]->key == key)
			return true;
	}
	return false;
}

static void look_at(struct recorder *r, pid_t tid)
{
	static struct unwind_frame frames[TAKE_MAX_FRAMES];
	static struct take_sample s;
	static uint8_t stack[TAKE_STACK_BYTES];
	struct proc_sample taken;
	struct take_sample **kept;
	struct unwind_mapping m;
	size_t n;

	if (r->t.samples.n == MAX_SHAPES || proc_sample_take(tid, &taken, stack, sizeof(stack)) < 0)
		return;
	if (r->maps >= 0)
		r->t.current = &r->t.maps.items[r->maps];
	/* The mappings change seldom; new code is noticed by its pc. */
	if (r->maps < 0 || r->interval_ns || !take_find(&r->t, taken.regs.r[ARCH_REG_PC], &m))
		r->maps = take_maps_load(&r->t, r->pid);
	if (r->maps < 0)
		return;
	r->t.current = &r->t.maps.items[r->maps];
	s = (struct take_sample){.regs = taken.regs, .n_copied = taken.n_stack};
	s.maps = (uint32_t)r->maps;
	s.outcome = unwind_walk(r->t.u, &s.regs, stack, taken.n_stack, take_find, &r->t, frames,
				TAKE_MAX_FRAMES, &n);
	if (n == 0 || !is_wanted(r, frames, n))
		return;
	describe(&r->t, &s);
	if (is_known(&r->t, s.key))
		return;
	s.stack = mmap(NULL, TAKE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	kept = array_push(&r->t.samples);
	if (!kept || s.stack == MAP_FAILED)
		abort();
	memcpy(s.stack, stack, taken.n_stack);
	*kept = malloc(sizeof(s));
	**kept = s;
}

/* ---- The program ---- */

static struct thread *find_thread(struct recorder *r, pid_t tid)
{
	for (unsigned int i = 0; i < r->n_threads; i++) {
		if (r->threads[i].tid == tid)
			return &r->threads[i];
	}
	if (r->n_threads == MAX_THREADS)
		return NULL;
	r->threads[r->n_threads] = (struct thread){.tid = tid};
	return &r->threads[r->n_threads++];
}

static int start(struct recorder *r, char **argv)
{
	r->pid = fork();
	if (r->pid == 0) {
		raise(SIGSTOP);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (r->pid < 0 || waitpid(r->pid, NULL, WUNTRACED) != r->pid ||
	    ptrace(PTRACE_SEIZE, r->pid, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)) <
		    0)
		return -errno;
	(void)find_thread(r, r->pid);
	return kill(r->pid, SIGCONT) < 0 ? -errno : 0;
}

static void go_on(struct recorder *r, const struct thread *t, pid_t tid, int signo)
{
	bool step = t && t->stepping && r->steps < MAX_STEPS;

	(void)ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, NULL, (void *)(intptr_t)signo);
}

/* A stop that is an int3 of the program's. */
static bool is_mark(pid_t tid)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 && info.si_code == SI_KERNEL;
}

static void on_stop(struct recorder *r, pid_t tid, int status)
{
	struct thread *t = find_thread(r, tid);
	int event = status >> 16, signo = WSTOPSIG(status);

	if (event) {
		if (t && t->asked && event == PTRACE_EVENT_STOP && signo == SIGTRAP)
			look_at(r, tid);
		if (t)
			t->asked = false;
		go_on(r, t, tid, 0);
		return;
	}
	if (signo == SIGTRAP && is_mark(tid)) {
		if (t)
			t->stepping = !t->stepping;
		signo = 0;
	} else if (signo == SIGTRAP && t && t->stepping) {
		r->steps++;
		signo = 0;
		look_at(r, tid);
	}
	go_on(r, t, tid, signo);
}

static void ask_all(struct recorder *r)
{
	if (!r->interval_ns || clock_monotonic_ns() < r->next_ns)
		return;
	r->next_ns = clock_monotonic_ns() + r->interval_ns;
	for (unsigned int i = 0; i < r->n_threads; i++) {
		if (!r->threads[i].asked &&
		    ptrace(PTRACE_INTERRUPT, r->threads[i].tid, NULL, 0) == 0)
			r->threads[i].asked = true;
	}
}

static void run(struct recorder *r)
{
	int status;
	pid_t tid;

	r->end_ns = clock_monotonic_ns() + MAX_TIME_S * NSEC_PER_SEC;
	while ((tid = waitpid(-1, &status, __WALL | (r->interval_ns ? WNOHANG : 0))) >= 0) {
		if (tid == 0)
			(void)usleep(500);
		else if (WIFSTOPPED(status))
			on_stop(r, tid, status);
		else if (tid == r->pid)
			break;
		ask_all(r);
		if (clock_monotonic_ns() > r->end_ns ||
		    (r->interval_ns && r->t.samples.n >= 4 * r->max_samples))
			(void)kill(r->pid, SIGKILL);
	}
}

/* ---- The choice ---- */

/* All special rows before the plain ones, of either an even choice. */
static void choose(struct recorder *r)
{
	uint32_t n_special = 0, n = r->t.samples.n, max = r->max_samples, kept = 0;
	uint32_t quota[2], seen[2] = {0, 0}, taken[2] = {0, 0}, total[2];

	for (uint32_t i = 0; i < n; i++)
		n_special += r->t.samples.items[i]->special;
	total[1] = n_special;
	total[0] = n - n_special;
	quota[1] = n_special < max * 2 / 3 || total[0] == 0 ? n_special : max * 2 / 3;
	if (quota[1] > max)
		quota[1] = max;
	quota[0] = total[0] < max - quota[1] ? total[0] : max - quota[1];
	for (uint32_t i = 0; i < n; i++) {
		struct take_sample *s = r->t.samples.items[i];
		int k = s->special;

		/* The next one is due when its share of those seen is. */
		seen[k]++;
		if ((uint64_t)seen[k] * quota[k] >= (uint64_t)(taken[k] + 1) * total[k]) {
			taken[k]++;
			r->t.samples.items[kept++] = s;
		}
	}
	r->t.samples.n = kept;
}

static int usage(void)
{
	fprintf(stderr, "take [-n SAMPLES] [-i MS] [-m MODULE] [-w MODULE] [-l LABEL] -o FILE -e "
			"EXPECTED -- CMD...\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct recorder r = {.max_samples = 20, .maps = -1};
	const char *out = NULL, *expect = NULL, *label = "";
	int option, e;

	while ((option = getopt(argc, argv, "+n:i:m:w:l:ro:e:")) != -1) {
		switch (option) {
		case 'n':
			r.max_samples = (uint32_t)atoi(optarg);
			break;
		case 'i':
			r.interval_ns = (uint64_t)atoi(optarg) * NSEC_PER_MSEC;
			break;
		case 'm':
			r.innermost = optarg;
			break;
		case 'w':
			r.among = optarg;
			break;
		case 'l':
			label = optarg;
			break;
		case 'r':
			r.t.ours_only = true;
			break;
		case 'o':
			out = optarg;
			break;
		case 'e':
			expect = optarg;
			break;
		default:
			return usage();
		}
	}
	if (optind >= argc || !out || !expect)
		return usage();
	r.t.files.max = TOUCH_MAX_RANGES - 1;
	r.t.maps.max = MAX_SHAPES;
	r.t.samples.max = MAX_SHAPES;
	e = unwinder_new(&r.t.u, NULL);
	if (e == 0)
		e = start(&r, argv + optind);
	if (e < 0) {
		fprintf(stderr, "take: %s cannot be started: %s\n", argv[optind], strerror(-e));
		return 1;
	}
	run(&r);
	e = (int)r.t.samples.n;
	choose(&r);
	fprintf(stderr, "%s: %" PRIu64 " instructions stepped, %d shapes, %u kept\n", label,
		r.steps, e, r.t.samples.n);
	if (r.t.samples.n == 0)
		return 1;
	/* So far mappings were looked at for the choice; now what the walks need counts. */
	for (uint32_t i = 0; i < r.t.maps.n; i++) {
		for (uint32_t k = 0; k < r.t.maps.items[i].lines.n; k++)
			r.t.maps.items[i].lines.items[k].wanted = false;
	}
	for (uint32_t i = 0; i < r.t.samples.n; i++)
		(void)take_cut(&r.t, r.t.samples.items[i]);
	e = take_write(&r.t, out, expect, label);
	if (e < 0)
		fprintf(stderr, "take: %s cannot be written\n", out);
	return e < 0;
}
