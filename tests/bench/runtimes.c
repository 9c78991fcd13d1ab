/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stack of a running interpreter costs whoever reads it: reads of the process's memory, and
 * CPU time. bench-runtimes PID IMAGE [N]: N times the thread PID is stopped, read as a reader or
 * the profiler reads it, and goes on. The first half is not counted: code is new there.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtimes/interp.h"
#include "runtimes/stepper.h"

/* Frames on native stacks are read late, some samples in a row. */
enum { STACK_BYTES = 65536, BATCH = 20, MAX_STEPS = 512, MAX_READS = 2000, MAX_BYTES = 8 << 20 };

struct bench_row {
	uint64_t ns;
	uint32_t reads, bytes, frames;
};

/* A thread that was stopped. */
struct bench_sample {
	struct runtime_regs regs;
	uint64_t n_stack;
	uint8_t stack[STACK_BYTES];
};

/* Code in files, which whoever walks native frames knows. */
static struct bench_file {
	uint64_t start, end;
} files[256];
static size_t n_files;

static int memory;
static struct bench_row row; /* of the walk */
static struct interp *interp;
static struct stepper *stepper;
static struct bench_sample batch[BATCH], *sample = batch;

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	uint64_t at = address - sample->regs.sp;

	if (interp && at < sample->n_stack && n <= sample->n_stack - at) {
		memcpy(ret, sample->stack + at, n);
		return true;
	}
	row.reads++;
	row.bytes += (uint32_t)n;
	return pread(memory, ret, n, (off_t)address) == (ssize_t)n;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void find_files(pid_t pid)
{
	char path[64], line[4096], rights[8];
	unsigned long long inode;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	while (f && n_files < 256 && fgets(line, sizeof(line), f)) {
		struct bench_file *to = &files[n_files];

		n_files += sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %llu", &to->start,
				  &to->end, rights, &inode) == 4 &&
			   rights[2] == 'x' && inode != 0;
	}
	if (f)
		(void)fclose(f);
}

static void set_file(struct runtime_regs *regs)
{
	for (size_t i = 0; i < n_files; i++) {
		if (regs->pc < files[i].start || regs->pc >= files[i].end)
			continue;
		regs->file_start = files[i].start;
		regs->file_end = files[i].end;
	}
}

/* ---- Walks ---- */

static bool walk_chain(pid_t tid)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	const struct chained_thread thread = {
		.tid = (uint32_t)tid, .n_registers = RUNTIME_N_REGS, .registers = sample->regs.r};
	size_t n = 0;
	enum chain_result r;

	interp_begin(interp, MAX_READS, MAX_BYTES);
	r = interp_walk(interp, &thread, frames, CHAIN_MAX_FRAMES, &n);
	row.frames = (uint32_t)n;
	return r == CHAIN_WHOLE || r == CHAIN_CUT;
}

static bool walk_stack(void)
{
	struct runtime_regs regs = sample->regs;
	const struct runtime_stack copy = {sample->stack, regs.sp, sample->n_stack, NULL};
	struct stepped_frame frames[64];
	enum runtime_step r = RUNTIME_STEP;
	size_t n;

	stepper_begin(stepper, MAX_READS, MAX_BYTES);
	for (int i = 0; i < MAX_STEPS && r == RUNTIME_STEP; i++) {
		if (!stepper_may_have(stepper, regs.pc))
			break;
		set_file(&regs);
		r = stepper_step(stepper, &copy, &regs, frames, 64, &n);
		row.frames += (uint32_t)n;
	}
	return row.frames > 0;
}

/* ---- The thread ---- */

static void stop(pid_t tid)
{
	uint8_t bytes[1024];
	struct iovec v = {bytes, sizeof(bytes)};
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &v) < 0 ||
	    !runtime_regs_from_ptrace(bytes, v.iov_len, &sample->regs))
		exit(1);
	sample->n_stack = 0;
	for (size_t n = STACK_BYTES; n >= 64 && sample->n_stack == 0; n /= 2) {
		if (pread(memory, sample->stack, n, (off_t)sample->regs.sp) == (ssize_t)n)
			sample->n_stack = n;
	}
}

static void go(pid_t tid)
{
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	(void)usleep(1000);
}

static bool measure(pid_t tid)
{
	uint64_t begin = cpu_ns();
	bool ok;

	row = (struct bench_row){0};
	ok = interp ? walk_chain(tid) : walk_stack();
	row.ns = cpu_ns() - begin;
	return ok;
}

static size_t look(pid_t tid, struct bench_row *ret)
{
	size_t n = 0;

	for (sample = batch; sample < batch + BATCH; sample++) {
		stop(tid);
		if (interp && measure(tid))
			ret[n++] = row;
		go(tid);
	}
	for (sample = batch; stepper && sample < batch + BATCH; sample++) {
		if (measure(tid))
			ret[n++] = row;
	}
	sample = batch;
	return n;
}

static int by_ns(const void *a, const void *b)
{
	const struct bench_row *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void print(struct bench_row *rows, size_t n)
{
	double reads = 0, bytes = 0, frames = 0;

	qsort(rows, n, sizeof(*rows), by_ns);
	for (size_t i = 0; i < n; i++) {
		reads += rows[i].reads;
		bytes += rows[i].bytes;
		frames += rows[i].frames;
	}
	printf("%zu stacks of %.1f frames: %.1f reads, %.0f bytes; CPU time %.1f us, p99 %.1f us\n",
	       n, frames / (double)n, reads / (double)n, bytes / (double)n,
	       (double)rows[n / 2].ns / 1000, (double)rows[n * 99 / 100].ns / 1000);
}

int main(int argc, char **argv)
{
	const struct memory m = {.read = read_memory};
	pid_t tid = argc > 2 ? atoi(argv[1]) : 0;
	uint64_t image = argc > 2 ? strtoull(argv[2], NULL, 16) : 0;
	int rounds = argc > 3 ? atoi(argv[3]) : 2000;
	struct bench_row *rows = calloc((size_t)rounds + BATCH, sizeof(*rows));
	size_t n = 0;
	const char *why = "";
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0 || !rows ||
	    (interp_new(&interp, &m, image, &why) < 0 &&
	     stepper_new(&stepper, &m, image, &why) < 0) ||
	    ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		(void)fprintf(stderr, "process %d cannot be read %s\n", (int)tid, why);
		return 1;
	}
	find_files(tid);
	for (int i = 0; i < rounds; i += BATCH) {
		size_t got = look(tid, rows + n);

		n += i >= rounds / 2 ? got : 0;
	}
	if (n > 0)
		print(rows, n);
	return n == 0;
}
