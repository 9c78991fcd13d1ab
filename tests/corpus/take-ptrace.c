/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus's recorder on its own processor: the program runs under ptrace. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/corpus/take.h"
#include "util/cleanup.h"
#include "util/clock.h"

enum { MAX_THREADS = 256, MAX_MAPS_TEXT = 1 << 20 };

struct thread {
	pid_t tid;
	bool stepping, asked;
};

struct runner {
	struct take *t;
	pid_t pid;
	struct thread threads[MAX_THREADS];
	unsigned int n_threads;
	uint64_t interval_ns, next_ns, end_ns;
};

int take_read_maps(struct take *t, pid_t pid, char **ret)
{
	_cleanup_free_ char *text = malloc(MAX_MAPS_TEXT);
	_cleanup_close_ int fd = -EBADF;
	char path[64];
	size_t n = 0;
	ssize_t got;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !text)
		return fd < 0 ? -errno : -ENOMEM;
	while (n < MAX_MAPS_TEXT - 1 && (got = read(fd, text + n, MAX_MAPS_TEXT - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

static void look_at(struct runner *r, pid_t tid)
{
	static uint8_t stack[TAKE_STACK_BYTES];
	struct proc_sample taken;

	if (proc_sample_take(tid, &taken, stack, sizeof(stack)) == 0)
		take_look(r->t, r->pid, &taken);
}

static struct thread *find_thread(struct runner *r, pid_t tid)
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

static int start(struct runner *r, char **argv)
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

static void go_on(struct runner *r, const struct thread *t, pid_t tid, int signo)
{
	bool step = t && t->stepping && r->t->steps < TAKE_MAX_STEPS;

	(void)ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, NULL, (void *)(intptr_t)signo);
}

/* A stop that is an int3 of the program's. */
static bool is_mark(pid_t tid)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 && info.si_code == SI_KERNEL;
}

static void on_stop(struct runner *r, pid_t tid, int status)
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
		r->t->steps++;
		signo = 0;
		look_at(r, tid);
	}
	go_on(r, t, tid, signo);
}

static void ask_all(struct runner *r)
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

static void run(struct runner *r)
{
	int status;
	pid_t tid;

	r->end_ns = clock_monotonic_ns() + TAKE_MAX_TIME_S * NSEC_PER_SEC;
	while ((tid = waitpid(-1, &status, __WALL | (r->interval_ns ? WNOHANG : 0))) >= 0) {
		if (tid == 0)
			(void)usleep(500);
		else if (WIFSTOPPED(status))
			on_stop(r, tid, status);
		else if (tid == r->pid)
			break;
		ask_all(r);
		if (clock_monotonic_ns() > r->end_ns ||
		    (r->interval_ns && r->t->samples.n >= 4 * r->t->max_samples))
			(void)kill(r->pid, SIGKILL);
	}
}

int take_run(struct take *t, char **argv)
{
	static struct runner r;
	int e;

	r.t = t;
	r.interval_ns = t->interval_ns;
	e = start(&r, argv);
	if (e == 0)
		run(&r);
	return e;
}
