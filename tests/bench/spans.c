/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample costs a reader more for its span: the CPU time to read a thread's context, and the
 * labels of a goroutine, through /proc/PID/mem of a process that stands still. It shares this one's
 * memory, and as with a reader it is another one, for which this one has no rights. The structs of
 * Go are made as its runtime has them.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtimes/node-context.h"
#include "src/reader/constants.h"
#include "src/reader/contexts.h"
#include "src/reader/go-threads.h"

enum { ROUNDS = 20000, PASSES = 9, NOBODY = 65534 };

static __thread void *variable;
/* Of tracers that make one for each span: a block each, some of them in a page. */
static uint8_t records[5][1024] __attribute__((aligned(4096)));
static uint8_t *const record = records[0];
static uint8_t thread[512] __attribute__((aligned(8))), goroutine[512] __attribute__((aligned(8)));
static uint64_t labels[3], pairs[2][4];
static const char span_key[] = "span_id", trace_key[] = "trace_id";
static char span_id[] = "00f067aa0ba902b7        00f067aa0ba902b8";
static struct constants constants;
static uint64_t n_reads;
static int memory, stat_fd; /* of that process */

/* Keys of labels are constants of a program, as a reader keeps them. */
static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	const uint8_t *constant = constants_find(&constants, address, n);

	if (constant) {
		memcpy(ret, constant, n);
		return true;
	}
	n_reads++;
	if (pread(memory, ret, n, (off_t)address) != (ssize_t)n)
		return false;
	if (address == (uintptr_t)span_key || address == (uintptr_t)trace_key)
		constants_put(&constants, address, ret, n);
	return true;
}

static struct memory budget(void)
{
	return (struct memory){.read = read_memory, .reads_left = 48, .bytes_left = 16384};
}

/* The broker tells both once for each thread. */
static uint64_t list;
static uint32_t own_tid, cpu;

/* The map of a continuation with its table of one bucket behind it, and the object with the record
 * in front of it, as V8 has them in the continuation that begins a span. A later one has that
 * object elsewhere. */
static struct {
	uint64_t before[59], holder[5], map[64];
} heap __attribute__((aligned(4096)));
static uint64_t far_holder[5];

/* A variable on the heap, as libraries have theirs that are loaded later, and a thread's record. */
static struct {
	uint8_t *variable, record[1024];
} beside __attribute__((aligned(2048)));

static struct contexts *contexts, *node_contexts, *beside_contexts, *old_contexts;

static bool read_context_of(struct contexts *c)
{
	const struct context_sample s = {
		.number = own_tid, .cpu = cpu, .robust_list = list, .now_ns = 1, .stat = stat_fd};
	struct memory m = budget(), now = m;
	uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
	uint32_t n;

	return contexts_read(c, &m, &now, &s, bytes, &n) == FRAME_RECORD_SPAN_READ;
}

static bool read_context(void)
{
	return read_context_of(contexts);
}

static bool read_node_context(void)
{
	return read_context_of(node_contexts);
}

static bool read_other_node_context(void)
{
	record[0]++;
	return read_node_context();
}

static bool read_far_node_context(void)
{
	heap.map[11] = (uintptr_t)far_holder + 1;
	return read_node_context();
}

static bool read_other_far_node_context(void)
{
	record[0]++;
	return read_far_node_context();
}

static bool read_other_context(void)
{
	record[0]++;
	return read_context();
}

static bool read_beside(void)
{
	return read_context_of(beside_contexts);
}

static bool read_other_beside(void)
{
	beside.record[0]++;
	return read_beside();
}

/* As where the CPU is not known. */
static bool read_old(void)
{
	return read_context_of(old_contexts);
}

static bool read_other_old(void)
{
	record[0]++;
	return read_old();
}

static bool read_other_far_old(void)
{
	variable = variable == record ? records[4] : record;
	return read_other_old();
}

static bool read_other_near(void)
{
	variable = variable == record ? records[3] : record;
	return read_other_context();
}

static bool read_other_far(void)
{
	variable = variable == record ? records[4] : record;
	return read_other_context();
}

static bool read_no_context(void)
{
	variable = NULL;
	return !read_context();
}

static struct go_threads *threads, *with_cycle, *with_library;
static uint32_t cycle; /* of the garbage collector */

static bool read_labels_of(struct go_threads *t)
{
	const struct go_sample s = {.number = own_tid,
				    .cpu = cpu,
				    .stat = stat_fd,
				    .goroutine = (uintptr_t)goroutine,
				    .robust_list = list};
	struct memory m = budget(), now = m;
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	uint32_t n;

	return go_threads_read(t, &m, &now, &s, bytes, &n) == FRAME_RECORD_SPAN_READ;
}

static bool read_labels(void)
{
	return read_labels_of(threads);
}

static bool read_labels_of_cycle(void)
{
	return read_labels_of(with_cycle);
}

static bool read_labels_of_library(void)
{
	return read_labels_of(with_library);
}

static struct go_layout layout;

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void change_labels(void)
{
	span_id[0] = span_id[0] == '0' ? '1' : '0';
}

static bool read_other_labels(void)
{
	change_labels();
	return read_labels();
}

/* The other one beside it, as texts of one size are. */
static bool read_other_close_labels(void)
{
	pairs[1][2] = (uintptr_t)span_id + 24;
	pairs[1][3] = pairs[0][3];
	return read_other_labels();
}

static bool read_other_close_labels_of_library(void)
{
	change_labels();
	return read_labels_of_library();
}

static bool read_none(void)
{
	put(goroutine + layout.labels, 0);
	return !read_labels();
}

static bool call_kernel(void)
{
	return syscall(SYS_getppid) >= 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The fastest of some passes: others wait for somebody else. */
static bool measure(const char *what, bool (*read)(void))
{
	uint64_t best = UINT64_MAX;

	n_reads = 0;
	for (int pass = 0; pass < PASSES; pass++) {
		uint64_t begin = cpu_ns(), ns;

		for (int i = 0; i < ROUNDS; i++) {
			if (!read())
				return false;
		}
		ns = (cpu_ns() - begin) / ROUNDS;
		best = ns < best ? ns : best;
	}
	printf("%-36s %5llu ns, %llu reads\n", what, (unsigned long long)best,
	       (unsigned long long)(n_reads / ROUNDS / PASSES));
	return true;
}

static void set_text(uint64_t *string, const char *text)
{
	string[0] = (uintptr_t)text;
	string[1] = strlen(text);
}

/* As glibc tells; 0: it is too old. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));

static int32_t cpu_offset(void)
{
	return &__rseq_offset ? (int32_t)__rseq_offset + 4 : 0;
}

static void make_context(void)
{
	struct memory m = budget();
	struct thread_variable v = {0};
	uint64_t size;

	(void)syscall(SYS_get_robust_list, 0, &list, &size);
	own_tid = (uint32_t)gettid();
	v.offset = (int64_t)((uintptr_t)&variable - thread_pointer_of(&m, list, own_tid, 0));
	v.cpu = cpu_offset();
	contexts = contexts_new(&v);
	for (int i = 0; i < 5; i++) {
		memset(records[i], 7, sizeof(records[i]));
		records[i][24] = 1;
		memset(records[i] + 26, 0, 2);
	}
	variable = record;
	memcpy(beside.record, record, sizeof(beside.record));
	beside.variable = beside.record;
	v.offset += (int64_t)((uintptr_t)&beside.variable - (uintptr_t)&variable);
	beside_contexts = contexts_new(&v);
	v.offset -= (int64_t)((uintptr_t)&beside.variable - (uintptr_t)&variable);
	v.cpu = 0;
	old_contexts = contexts_new(&v);
}

static void make_node_context(void)
{
	static __thread struct node_variable node;
	static uint64_t key, slot, storage;
	uint64_t *map = heap.map;
	struct memory m = budget();
	struct thread_variable v = {.cpu = cpu_offset(), .node = true};

	map[3] = (uintptr_t)&map[4] + 1;
	map[8] = UINT64_C(1) << 32;
	map[10] = storage = (uintptr_t)&key + 1;
	map[11] = (uintptr_t)heap.holder + 1;
	heap.holder[0] = far_holder[0] = (uintptr_t)&key + 5;
	heap.holder[3] = far_holder[3] = (uintptr_t)record;
	slot = (uintptr_t)map + 1;
	node = (struct node_variable){.slot = (uintptr_t)&slot, .storage = (uintptr_t)&storage};
	v.offset = (int64_t)((uintptr_t)&node - thread_pointer_of(&m, list, own_tid, 0));
	node_contexts = contexts_new(&v);
}

/* As a reader does. */
static bool stay_on_this_cpu(void)
{
	cpu_set_t only;

	cpu = (uint32_t)sched_getcpu();
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	return sched_setaffinity(0, sizeof(only), &only) == 0;
}

static void make_labels(const struct go_layout *l)
{
	put(thread + l->number, own_tid);
	put(thread + l->current, (uintptr_t)goroutine);
	put(goroutine + 48, (uintptr_t)thread);
	put(goroutine + l->goroutine, 18);
	put(goroutine + l->labels, (uintptr_t)labels);
	labels[0] = (uintptr_t)pairs;
	labels[1] = labels[2] = 2;
	set_text(&pairs[0][0], span_key);
	set_text(&pairs[0][2], span_id);
	pairs[0][3] = 16;
	set_text(&pairs[1][0], trace_key);
	set_text(&pairs[1][2], "4bf92f3577b34da6a3ce929d0e0e4736");
}

/* Until this process has ended. */
static int stand_still(void *arg)
{
	const int *ends = arg;
	char none;

	(void)close(ends[1]);
	return read(ends[0], &none, 1) == 0 ? 0 : 1;
}

/* false: it cannot be begun, or read. */
static bool begin_process(void)
{
	static uint8_t stack[16384] __attribute__((aligned(16)));
	static int ends[2];
	char path[64];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = clone(stand_still, stack + sizeof(stack), CLONE_VM | SIGCHLD, ends);
	if (pid < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
	stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return false;
	return memory >= 0 && stat_fd >= 0;
}

int main(void)
{
	const struct thread_variable none = {0}, library = {.cpu = cpu_offset()};

	if (!stay_on_this_cpu() || !begin_process() || !go_layout_find(26, &layout))
		return 1;
	make_context();
	if (!(threads = go_threads_new(&layout, 0, &none)) ||
	    !(with_cycle = go_threads_new(&layout, (uintptr_t)&cycle, &none)) ||
	    !(with_library = go_threads_new(&layout, 0, &library)))
		return 1;
	make_labels(&layout);
	make_node_context();
	if (!contexts || !node_contexts || !beside_contexts || !old_contexts)
		return 1;
	return measure("a system call (getppid)", call_kernel) &&
			       measure("the context of the last sample", read_context) &&
			       measure("another one in its record", read_other_context) &&
			       measure("another one in its page", read_other_near) &&
			       measure("another one elsewhere", read_other_far) &&
			       measure("that of the last, without the CPU", read_old) &&
			       measure("in its record, without the CPU", read_other_old) &&
			       measure("elsewhere, without the CPU", read_other_far_old) &&
			       measure("that of the last, beside its variable", read_beside) &&
			       measure("another one, beside its variable", read_other_beside) &&
			       measure("that of the last sample, in Node.js", read_node_context) &&
			       measure("another one, in Node.js", read_other_node_context) &&
			       measure("the same, its object elsewhere", read_far_node_context) &&
			       measure("another one, its object elsewhere",
				       read_other_far_node_context) &&
			       measure("none", read_no_context) &&
			       measure("two labels, in the same cycle", read_labels_of_cycle) &&
			       measure("two labels, as at the last sample", read_labels) &&
			       measure("the same, the CPU by the C library",
				       read_labels_of_library) &&
			       measure("two other labels", read_other_labels) &&
			       measure("two others, of the same size", read_other_close_labels) &&
			       measure("the same, the CPU by the C library",
				       read_other_close_labels_of_library) &&
			       measure("a goroutine with none", read_none)
		       ? 0
		       : 1;
}
