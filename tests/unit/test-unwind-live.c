/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every instruction of real code: a child is stepped one instruction at a time through prologues,
 * epilogues, the PLT, ld.so's lazy resolver, dlopen, a signal handler and vfork, and at each stop
 * its registers and stack are copied and walked by us and by libdw. Where our frames are not its,
 * as in 0.5% of the stops, the code must show that libdw is wrong (tests/corpus/judge.h).
 *
 * Known of it: after an epilogue's `pop %rbp` CFI says still that rbp is saved, now below sp, where
 * the copy has nothing; libdw gives up where a caller needs rbp. And it takes rbx for
 * call-clobbered unless CFI mentions it, so it cannot pass ld.so's lazy resolver (CFA = rbx + 32)
 * from a function that has not saved rbx yet.
 */
#include <elfutils/version.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/unit/test.h"
#include "tests/unit/unwind-compare.h"
#include "tests/unit/unwind-workload.h"

#define STACK_BYTES (64 * 1024)

struct stepper {
	pid_t pid;
	struct proc_modules modules;
	struct comparison c;
	uint8_t stack[STACK_BYTES];
};

static pid_t start_child(enum unwind_workload_part part)
{
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		unwind_workload(part);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
	return pid;
}

static void reload_maps(struct stepper *s)
{
	proc_maps_deinit(&s->c.maps);
	CHECK_INT(proc_maps_load(&s->c.maps, &s->modules, s->pid, NULL), ==, 0);
	oracle_free(s->c.oracle);
	s->c.oracle = oracle_new_process(s->pid, NULL);
}

/* max_samples: 1 in so many instructions is walked, so that a part takes a second or so. */
static struct tally step_through(enum unwind_workload_part part, unsigned int every,
				 unsigned int max_steps)
{
	struct stepper *s = calloc(1, sizeof(*s));
	struct proc_sample sample;
	struct tally t;
	unsigned int steps;
	int status = 0, signo = 0;

	CHECK_INT(unwinder_new(&s->c.u, NULL), ==, 0);
	s->modules.u = s->c.u;
	s->pid = start_child(part);
	reload_maps(s);
	for (steps = 0; steps < max_steps; steps++) {
		struct unwind_mapping ignored;

		if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, (void *)(intptr_t)signo) < 0 ||
		    waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status))
			break;
		signo = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (steps % every != 0)
			continue;
		CHECK_INT(proc_sample_take(s->pid, &sample, s->stack, sizeof(s->stack)), ==, 0);
		/* dlopen maps new code. */
		if (!proc_find(&s->c.maps, sample.regs.r[UNWIND_REG_PC], &ignored))
			reload_maps(s);
		compare_sample(&s->c, &sample);
	}
	if (!WIFEXITED(status)) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	t = s->c.t;
	comparison_print(&s->c, steps);
	oracle_free(s->c.oracle);
	proc_maps_deinit(&s->c.maps);
	proc_modules_deinit(&s->modules);
	unwinder_free(s->c.u);
	free(s);
	return t;
}

static uint64_t all_samples, all_identical; /* of all cases together */

static void check_agreement(const struct tally *t)
{
	all_samples += t->samples;
	all_identical += t->verdicts[VERDICT_IDENTICAL];
	CHECK_INT(t->samples, >, 500);
	CHECK_INT(t->verdicts[VERDICT_UNDECIDED], ==, 0);
	CHECK_INT(t->verdicts[VERDICT_IDENTICAL] * 100, >=, t->samples * 98);
	CHECK_INT(t->registers.sp_other, ==, 0);
	CHECK_INT(t->registers.fp_other, ==, 0);
	CHECK_INT(t->registers.fp_unknown, ==, 0);
#if _ELFUTILS_PREREQ(0, 188)
	CHECK_INT(t->registers.sp_same, ==, t->registers.frames);
	CHECK_INT(t->registers.fp_same * 100, >=, t->registers.frames * 98);
#endif
}

static void test_libc(void)
{
	struct tally t = step_through(WORKLOAD_LIBC, 1, 12000);

	check_agreement(&t);
	CHECK_INT(t.complete, ==, t.samples);
}

static void test_signal(void)
{
	struct tally t = step_through(WORKLOAD_SIGNAL, 1, 12000);

	check_agreement(&t);
	CHECK_INT(t.complete, ==, t.samples);
}

static void test_deep(void)
{
	struct tally t = step_through(WORKLOAD_DEEP, 7, 40000);

	check_agreement(&t);
	CHECK_INT(t.complete, ==, t.samples);
	CHECK_INT(t.frames, >, t.samples * 50);
}

static void test_loader(void)
{
	struct tally t = step_through(WORKLOAD_LOADER, 11, 200000);

	check_agreement(&t);
	/* The few functions of crtstuff.c (frame_dummy ...) that dlopen calls come without CFI. */
	CHECK_INT(t.complete + t.outcomes[UNWIND_NO_CFI], ==, t.samples);
	CHECK_INT(t.complete * 1000, >=, t.samples * 995);
}

static __attribute__((unused)) void test_vfork(void)
{
	struct tally t = step_through(WORKLOAD_VFORK, 1, 5000);

	check_agreement(&t);
}

int main(void)
{
#ifndef __x86_64__
	SKIP("where libdw is wrong is known on x86_64 alone");
#endif
	RUN(test_libc);
	RUN(test_signal);
	RUN(test_deep);
	RUN(test_loader);
#ifndef __SANITIZE_ADDRESS__ /* its vfork is assembly without CFI */
	RUN(test_vfork);
#endif
	fprintf(stderr, "all: identical %" PRIu64 " of %" PRIu64 "\n", all_identical, all_samples);
#ifdef __SANITIZE_ADDRESS__ /* its interceptors add more places where libdw stops before us */
	CHECK_INT(all_identical * 1000, >=, all_samples * 990);
#else
	CHECK_INT(all_identical * 1000, >=, all_samples * 995);
#endif
	return 0;
}
