/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every instruction of real code: a child is stepped one instruction at a time through prologues,
 * epilogues, the PLT, ld.so's lazy resolver, dlopen, a signal handler and vfork, and at each stop
 *its registers and stack are copied and walked by us and by libdw. Our frames may never contradict
 * libdw's nor stop before them. Where libdw stops first (1% here) ours must reach the entry. Known:
 *
 *	below sp   After an epilogue's `pop %rbp` CFI says still that rbp is saved, now below sp,
 *where the copy (which begins at sp) has nothing. libdw gives up where a caller needs rbp. rbx
 *libdw takes rbx for call-clobbered unless CFI mentions it, so it cannot pass ld.so's lazy resolver
 *(CFA = rbx + 32) from a function that has not saved rbx yet.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "tests/unit/test.h"
#include "tests/unit/unwind-proc.h"
#include "tests/unit/unwind-workload.h"
#include "unwind/internal.h"

#define STACK_BYTES (64 * 1024)

struct tally {
	uint64_t samples, frames, identical, ours_longer, ours_shorter, contradict, complete;
	uint64_t longer_not_complete;
	uint64_t outcomes[UNWIND_N_OUTCOMES];
};

struct stepper {
	pid_t pid;
	struct unwinder *u;
	struct proc_modules modules;
	struct proc_maps maps;
	struct dw_process *dw;
	uint8_t stack[STACK_BYTES];
	struct tally t;
	unsigned int shown;
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

static void show(struct stepper *s, const char *kind, const struct unwind_frame *ours,
		 size_t n_ours, const uint64_t *theirs, size_t n_theirs,
		 enum unwind_outcome outcome)
{
	if (s->shown++ >= 12)
		return;
	fprintf(stderr, "  %s: ours %zu (%s), libdw %zu\n", kind, n_ours,
		unwind_outcome_name(outcome), n_theirs);
	for (size_t i = 0; i < n_ours || i < n_theirs; i++) {
		uint64_t bias = i < n_ours ? ours[i].bias : 0;

		fprintf(stderr, "    %#" PRIx64 " %#" PRIx64 " (%#" PRIx64 " in the file)\n",
			i < n_ours ? ours[i].address : 0, i < n_theirs ? theirs[i] : 0,
			i < n_ours ? ours[i].address - bias : 0);
		if (i < n_ours && i < n_theirs && ours[i].address != theirs[i])
			break;
	}
}

/* The linker's code without CFI, and the way to the entry found from there. */
static bool in_stub(struct stepper *s, uint64_t pc)
{
	struct unwind_mapping m;
	uint64_t rel;

	if (!proc_find(&s->maps, pc, &m) || !m.module)
		return false;
	rel = pc - m.bias - m.module->base;
	for (uint32_t i = 0; i < m.module->n_stubs; i++) {
		if (rel >= m.module->stubs[i].start && rel < m.module->stubs[i].end)
			return true;
	}
	return false;
}

static void compare(struct stepper *s, const struct proc_sample *sample)
{
	static struct unwind_frame ours[PROC_MAX_FRAMES];
	static uint64_t theirs[PROC_MAX_FRAMES];
	enum unwind_outcome outcome;
	size_t n_ours, n_theirs, same = 0;

	outcome = unwind_walk(s->u, &sample->regs, sample->stack, sample->n_stack, proc_find,
			      &s->maps, ours, PROC_MAX_FRAMES, &n_ours);
	n_theirs = dw_process_walk(s->dw, sample, theirs);
	while (same < n_ours && same < n_theirs && ours[same].address == theirs[same])
		same++;
	s->t.samples++;
	s->t.frames += n_ours;
	s->t.outcomes[outcome]++;
	s->t.complete += outcome == UNWIND_COMPLETE;
	if (same == n_ours && same == n_theirs) {
		s->t.identical++;
		if (outcome != UNWIND_COMPLETE)
			show(s, "same but not complete", ours, n_ours, theirs, n_theirs, outcome);
	} else if (same == n_theirs) {
		s->t.ours_longer++;
		if (outcome != UNWIND_COMPLETE) {
			s->t.longer_not_complete++;
			show(s, "libdw shorter", ours, n_ours, theirs, n_theirs, outcome);
		}
	} else if (same == n_ours) {
		s->t.ours_shorter++;
		show(s, "ours shorter", ours, n_ours, theirs, n_theirs, outcome);
	} else if (same == 1 && outcome == UNWIND_COMPLETE && in_stub(s, ours[0].address)) {
		s->t.ours_longer++;
	} else {
		s->t.contradict++;
		show(s, "contradiction", ours, n_ours, theirs, n_theirs, outcome);
	}
}

static void reload_maps(struct stepper *s)
{
	proc_maps_deinit(&s->maps);
	CHECK_INT(proc_maps_load(&s->maps, &s->modules, s->pid, NULL), ==, 0);
	dw_process_free(s->dw);
	s->dw = dw_process_new(s->pid, NULL);
}

/* max_samples: 1 in so many instructions is walked, so that a part takes a second or so. */
static struct tally step_through(enum unwind_workload_part part, unsigned int every,
				 unsigned int max_steps)
{
	struct stepper *s = calloc(1, sizeof(*s));
	struct proc_sample sample;
	struct user_regs_struct u;
	struct tally t;
	unsigned int steps;
	int status = 0, signo = 0;

	CHECK_INT(unwinder_new(&s->u, NULL), ==, 0);
	s->modules.u = s->u;
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
		/* dlopen maps new code. */
		CHECK_INT(ptrace(PTRACE_GETREGS, s->pid, NULL, &u), ==, 0);
		if (!proc_find(&s->maps, u.rip, &ignored))
			reload_maps(s);
		CHECK_INT(proc_sample_take(s->pid, &sample, s->stack, sizeof(s->stack)), ==, 0);
		compare(s, &sample);
	}
	if (!WIFEXITED(status)) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	t = s->t;
	fprintf(stderr,
		"  %u instructions, %" PRIu64 " walked, %" PRIu64 " frames: identical %" PRIu64
		", libdw shorter %" PRIu64 ", ours shorter %" PRIu64 ", contradict %" PRIu64
		", complete %" PRIu64 ", rows %" PRIu64 "\n",
		steps, t.samples, t.frames, t.identical, t.ours_longer, t.ours_shorter,
		t.contradict, t.complete, unwinder_stats(s->u)->rows_compiled);
	dw_process_free(s->dw);
	proc_maps_deinit(&s->maps);
	proc_modules_deinit(&s->modules);
	unwinder_free(s->u);
	free(s);
	return t;
}

static uint64_t all_samples, all_identical; /* of all cases together */

static void check_agreement(const struct tally *t)
{
	all_samples += t->samples;
	all_identical += t->identical;
	CHECK_INT(t->samples, >, 500);
	CHECK_INT(t->contradict, ==, 0);
	CHECK_INT(t->ours_shorter, ==, 0);
	CHECK_INT(t->longer_not_complete, ==, 0);
	CHECK_INT(t->identical * 100, >=, t->samples * 98);
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
