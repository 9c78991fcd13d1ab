/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real Go programs, linked by Go alone (no .eh_frame, .debug_frame compressed or stripped) and by a
 * C linker (cgo): stacks of their own that end in runtime.goexit. Their threads are stopped at
 * random and walked; skipped where there is no Go.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/corpus/judge.h"
#include "tests/corpus/oracle.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"
#include "tests/unit/unwind-proc.h"
#include "unwind/internal.h"

#define ROUNDS	       400
#define HANDLER_ROUNDS 100 /* in one of so many each thread is stepped into a signal handler */
#define HANDLER_STEPS  60
#define MAX_THREADS    64
#define PAUSE_US       300 /* the program runs for so long between two rounds */

static const char source[] =
	"import (\"fmt\"; \"os\"; \"reflect\"; \"sort\"; \"time\")\n"
	"//go:noinline\n"
	"func leaf(x int) int { return x*x + 3 }\n"
	"//go:noinline\n"
	"func work(depth int, v []int) int {\n"
	"	if depth > 0 { return work(depth-1, v) + 1 }\n"
	"	sort.Ints(v)\n"
	"	s := 0\n"
	"	for i := range v { s += leaf(v[i]) }\n"
	"	return s\n"
	"}\n"
	"func main() {\n"
	"	fmt.Println(reflect.ValueOf(work).Pointer())\n"
	"	null, _ := os.OpenFile(\"/dev/null\", os.O_WRONLY, 0)\n"
	"	for g := 0; g < 2; g++ { go func() {\n"
	"		for i := 0; ; i++ {\n"
	"			v := make([]int, 200)\n"
	"			for k := range v { v[k] = (k * 7919) % 211 }\n"
	"			if work(i%20, v) == 5 || i%50 == 0 { null.Write([]byte(\"x\")) }\n"
	"		} }() }\n"
	"	time.Sleep(time.Hour)\n"
	"}\n";

static char dir[] = "/tmp/unwind-go-XXXXXX";

static int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void build(bool cgo, const char *flags, char *ret_path, size_t size)
{
	FILE *f;

	(void)snprintf(ret_path, size, "%s/main.go", dir);
	f = fopen(ret_path, "w");
	CHECK(f && fprintf(f, "package main\n%s%s", cgo ? "import \"C\"\n" : "", source) > 0 &&
	      fclose(f) == 0);
	(void)snprintf(ret_path, size, "%s/prog", dir);
	if (test_compile(dir, "prog",
			 "GO111MODULE=off GOFLAGS= CGO_ENABLED=%d go build %s -o prog main.go >&2",
			 cgo, flags) != 0)
		SKIP("go cannot build a program here");
}

/* The program prints where its function work is. */
static pid_t start(const char *path, uint64_t *ret_work)
{
	char text[32] = "";
	int fds[2];
	pid_t pid;

	CHECK_INT(pipe(fds), ==, 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(path, path, (char *)NULL);
		_exit(127);
	}
	CHECK_INT(pid, >, 0);
	close(fds[1]);
	CHECK_INT(read(fds[0], text, sizeof(text) - 1), >, 0);
	close(fds[0]);
	*ret_work = strtoull(text, NULL, 10);
	usleep(50000);
	return pid;
}

struct tally {
	uint64_t samples, complete, busy, busy_complete, verdicts[VERDICT_N];
	uint64_t handled; /* out of a signal handler, and libdw's walk is another one */
	uint64_t outcomes[UNWIND_N_OUTCOMES];
};

struct target {
	struct unwinder *u;
	struct proc_modules modules;
	struct proc_maps maps;
	struct oracle *oracle;
	struct tally t;
	struct unwind_module *without_table; /* of which the walk is not to use Go's; NULL: none */
	uint64_t work;
	unsigned int shown;
};

static void show(enum unwind_outcome outcome, const uint64_t *ours, size_t n,
		 const uint64_t *theirs, size_t n_theirs)
{
	fprintf(stderr, "  %s, libdw %zu:", unwind_outcome_name(outcome), n_theirs);
	for (size_t i = 0; i < n || i < n_theirs; i++) {
		fprintf(stderr, " %" PRIx64, i < n ? ours[i] : 0);
		if (i >= n || i >= n_theirs || ours[i] != theirs[i])
			fprintf(stderr, "|%" PRIx64, i < n_theirs ? theirs[i] : 0);
	}
	fprintf(stderr, "\n");
}

/*
 * Go's signal handlers run on stacks of their own. A walk out of one ends with the register values
 * of the interrupted function: the copied stack does not hold that function's frame.
 */
static bool is_signal_return(struct target *t, uint64_t address)
{
#if defined(__x86_64__)
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
	static const uint8_t code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#endif
	uint8_t there[sizeof(code)];

	return proc_read(&t->maps, address, there, sizeof(there)) &&
	       memcmp(there, code, sizeof(code)) == 0;
}

/* Ours ends in the outermost function of a handler. libdw may not see that one while it is entering
 * another, and goes on to what was interrupted. */
static bool leaves_handler(struct target *t, enum unwind_outcome outcome, const uint64_t *theirs,
			   size_t n)
{
	for (size_t i = 0; i < n && outcome == UNWIND_COMPLETE; i++) {
		if (is_signal_return(t, theirs[i]))
			return true;
	}
	return false;
}

static void walk_thread(struct target *t, pid_t tid)
{
	static uint8_t stack[64 * 1024];
	static struct unwind_frame frames[PROC_MAX_FRAMES];
	static uint64_t ours[PROC_MAX_FRAMES], theirs[PROC_MAX_FRAMES];
	struct proc_sample sample;
	enum unwind_outcome outcome;
	enum verdict verdict;
	struct judge judge;
	size_t n, n_theirs;
	bool busy = false, same_stack = true;

	if (proc_sample_take(tid, &sample, stack, sizeof(stack)) < 0)
		return;
	if (t->without_table)
		t->without_table->go.usable = false;
	outcome = unwind_walk(t->u, &sample.regs, stack, sample.n_stack, proc_find, &t->maps,
			      frames, PROC_MAX_FRAMES, &n);
	t->t.samples++;
	t->t.outcomes[outcome]++;
	t->t.complete += outcome == UNWIND_COMPLETE;
	for (size_t i = 0; i < n; i++) {
		ours[i] = frames[i].address;
		same_stack &= !is_signal_return(t, ours[i]);
		busy |= same_stack && ours[i] - t->work < 0x100;
	}
	t->t.busy += busy;
	t->t.busy_complete += busy && outcome == UNWIND_COMPLETE;
	if (t->without_table) /* but the judge is */
		t->without_table->go.usable = true;
	n_theirs = oracle_walk(t->oracle, &sample.regs, stack, sample.n_stack, theirs,
			       PROC_MAX_FRAMES);
	judge = (struct judge){&sample.regs, stack,    sample.n_stack, proc_find,
			       proc_read,    &t->maps, PROC_MAX_FRAMES};
	verdict = judge_walks(&judge, ours, n, outcome, theirs, n_theirs);
	if (verdict == VERDICT_UNDECIDED && leaves_handler(t, outcome, theirs, n_theirs))
		verdict = VERDICT_PAST_END;
	t->t.verdicts[verdict]++;
	t->t.handled +=
		!same_stack && verdict != VERDICT_IDENTICAL && verdict != VERDICT_LOST_CALLERS;
	if ((verdict == VERDICT_UNDECIDED || (busy && outcome != UNWIND_COMPLETE)) &&
	    t->shown++ < 12)
		show(outcome, ours, n, theirs, n_theirs);
}

/* A signal, and stops at each instruction by which the thread enters its handler. */
static void step_into_handler(struct target *t, pid_t pid, pid_t tid)
{
	int status, signal = SIGURG;

	CHECK_INT(syscall(SYS_tgkill, pid, tid, SIGURG), ==, 0);
	do {
		if (ptrace(PTRACE_CONT, tid, NULL, NULL) < 0 ||
		    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			return;
	} while (WSTOPSIG(status) != SIGURG);
	for (int i = 0; i < HANDLER_STEPS; i++, signal = 0) {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)signal) < 0 ||
		    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			return;
		walk_thread(t, tid);
	}
}

/* Seizes all threads, so that the program takes no CPU time while they are walked. */
static size_t stop_threads(pid_t pid, pid_t *ret_tids)
{
	char path[64];
	struct dirent *e;
	size_t n = 0, n_stopped = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	CHECK(d != NULL);
	while ((e = readdir(d)) && n < MAX_THREADS) {
		pid_t tid = atoi(e->d_name);

		if (tid > 0 && ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0)
			ret_tids[n++] = tid;
	}
	closedir(d);
	for (size_t i = 0; i < n; i++)
		(void)ptrace(PTRACE_INTERRUPT, ret_tids[i], NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		if (waitpid(ret_tids[i], NULL, __WALL) == ret_tids[i])
			ret_tids[n_stopped++] = ret_tids[i];
	}
	return n_stopped;
}

static void visit_threads(struct target *t, pid_t pid, bool handlers)
{
	pid_t tids[MAX_THREADS];
	size_t n = stop_threads(pid, tids);

	for (size_t i = 0; i < n; i++) {
		walk_thread(t, tids[i]);
		if (handlers)
			step_into_handler(t, pid, tids[i]);
	}
	for (size_t i = 0; i < n; i++)
		(void)ptrace(PTRACE_DETACH, tids[i], NULL, NULL);
}

enum way { BY_GO_TABLE, BY_DEBUG_FRAME, BY_GO_TABLE_OF_CGO };

static struct tally observe(const char *flags, enum way way)
{
	struct target *t = calloc(1, sizeof(*t));
	struct tally result;
	bool usable = false;
	char path[64];
	pid_t pid;

	build(way == BY_GO_TABLE_OF_CGO, flags, path, sizeof(path));
	pid = start(path, &t->work);
	CHECK_INT(unwinder_new(&t->u, NULL), ==, 0);
	t->modules.u = t->u;
	CHECK_INT(proc_maps_load(&t->maps, &t->modules, pid, NULL), ==, 0);
	for (struct proc_module *m = t->modules.list; m; m = m->next) {
		usable |= m->module && m->module->go.usable;
		if (m->module && m->module->go.usable && way == BY_DEBUG_FRAME)
			t->without_table = m->module;
	}
	/* Without it frame pointers lead to the end, too, but past callers of leaf functions. */
	CHECK(usable);
	t->oracle = oracle_new_process(pid, NULL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		visit_threads(t, pid, i % HANDLER_ROUNDS == 0);
		usleep(PAUSE_US);
	}
	result = t->t;
	fprintf(stderr,
		"  %" PRIu64 " samples, complete %" PRIu64 ", goroutines %" PRIu64 " of %" PRIu64
		"\n ",
		result.samples, result.complete, result.busy_complete, result.busy);
	for (unsigned int i = 0; i < UNWIND_N_OUTCOMES; i++)
		fprintf(stderr, " %s %" PRIu64 ";", unwind_outcome_name(i), result.outcomes[i]);
	for (int i = 0; i < VERDICT_N; i++) {
		if (result.verdicts[i])
			fprintf(stderr, " %s %" PRIu64 ";", verdict_names[i], result.verdicts[i]);
	}
	fprintf(stderr, " rows %" PRIu64 ", %" PRIu64 " bytes\n",
		unwinder_stats(t->u)->rows_compiled, unwinder_stats(t->u)->row_bytes);
	CHECK_INT(result.verdicts[VERDICT_CAUTIOUS] * 100, <=, result.samples);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	oracle_free(t->oracle);
	proc_maps_deinit(&t->maps);
	proc_modules_deinit(&t->modules);
	unwinder_free(t->u);
	free(t);
	return result;
}

static void test_go(void)
{
	struct tally t = observe("", BY_GO_TABLE);

	/* libdw goes on above goexit and mcall with what happens to lie there: one frame more. */
	CHECK_INT(t.busy, >, 100);
	CHECK_INT(t.busy_complete, ==, t.busy);
	CHECK_INT(t.complete + t.outcomes[UNWIND_TRUNCATED], ==, t.samples);
	CHECK_INT(t.verdicts[VERDICT_UNDECIDED], ==, 0);
}

/* -s -w: no symbols and no .debug_frame either. */
static void test_go_stripped(void)
{
	struct tally t = observe("-ldflags='-s -w'", BY_GO_TABLE);

	CHECK_INT(t.busy, >, 100);
	CHECK_INT(t.busy_complete, ==, t.busy);
	CHECK_INT(t.verdicts[VERDICT_UNDECIDED], ==, 0);
}

static void test_go_debug_frame(void)
{
	struct tally t = observe("", BY_DEBUG_FRAME);

	CHECK_INT(t.busy, >, 100);
	CHECK_INT(t.verdicts[VERDICT_UNDECIDED], ==, 0);
	/* Out of the handlers of the scheduler's signals libdw does not find; how often a thread is
	 * stopped there is up to the host. */
	CHECK_INT((t.verdicts[VERDICT_IDENTICAL] + t.verdicts[VERDICT_LOST_CALLERS] + t.handled) *
			  1000,
		  >=, t.samples * 999);
}

/* Linked by a C linker, whose code comes first; position independent, too. */
static void check_cgo(const char *flags)
{
	struct tally t = observe(flags, BY_GO_TABLE_OF_CGO);

	CHECK_INT(t.busy, >, 100);
	CHECK_INT(t.busy_complete, ==, t.busy);
	CHECK_INT(t.verdicts[VERDICT_UNDECIDED], ==, 0);
}

static void test_go_cgo(void)
{
	check_cgo("-ldflags='-s -w -linkmode=external'");
	check_cgo("-buildmode=pie -ldflags='-s -w -linkmode=external'");
}

static void clean_up(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	(void)run(command);
}

int main(void)
{
	if (run("command -v go >/dev/null 2>&1") != 0)
		SKIP("no Go toolchain");
	CHECK(mkdtemp(dir) != NULL);
	atexit(clean_up);
	RUN(test_go);
	RUN(test_go_stripped);
	RUN(test_go_debug_frame);
	RUN(test_go_cgo);
	return 0;
}
