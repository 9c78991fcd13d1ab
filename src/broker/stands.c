/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads do when the off-CPU time of processes, or of the host in a capture, begins: no
 * switch shows that until they continue, or stop. The threads of a process that hangs, or only
 * computes, never do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/broker/tasks.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define MAX_TASKS 16384
/* Of looking, between which others are served: the profiler waits for answers while rings fill up.
 * The first slice is enough for most hosts. */
#define FIRST_NS (10 * NSEC_PER_MSEC)
#define SLICE_NS (1 * NSEC_PER_MSEC)
#define PAUSE_NS (8 * NSEC_PER_MSEC)
#define TELL_NS	 (10 * NSEC_PER_MSEC) /* between two messages */

static int read_of_task(pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	_cleanup_close_ int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return 0;
}

/* "-1 SP PC" or "CALL ARG0 .. ARG5 SP PC"; "running" is another line. */
static bool read_place(const char *text, struct message_stands *ret)
{
	const char *p = strrchr(text, ' ');
	char *end;

	if (!p || p == text)
		return false;
	ret->ip = strtoull(p + 1, NULL, 16);
	while (p > text && p[-1] != ' ')
		p--;
	ret->sp = strtoull(p, &end, 16);
	return end > p;
}

/* It is interruptibly (S) or not (D) asleep, in that process, and at that place; or it runs, or
 * could (R). A thread of the kernel has no memory, and is not asked for. */
static bool find_state(pid_t tid, struct message_stands *ret)
{
	char text[2048];
	const char *state, *tgid;

	if (read_of_task(tid, "status", text, sizeof(text)) < 0)
		return false;
	state = strstr(text, "\nState:\t");
	tgid = strstr(text, "\nTgid:\t");
	if (!state || !tgid || !strstr(text, "\nVmSize:") ||
	    !strchr("SDR", state[strlen("\nState:\t")]))
		return false;
	ret->runs = state[strlen("\nState:\t")] == 'R';
	ret->pid = (uint32_t)atoi(tgid + strlen("\nTgid:\t"));
	ret->tid = (uint32_t)tid;
	ret->time_ns = clock_monotonic_ns();
	return ret->runs ||
	       (read_of_task(tid, "syscall", text, sizeof(text)) == 0 && read_place(text, ret));
}

/* Children from before are not asked for. */
static bool is_target(const struct broker *b, const struct message_stands *task)
{
	uint32_t id = b->options.threads ? task->tid : task->pid;

	if (b->options.n_pids == 0)
		return true;
	for (size_t i = 0; i < b->options.n_pids; i++) {
		if ((uint32_t)b->options.pids[i] == id)
			return true;
	}
	return false;
}

static bool follows_switches(const struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->events[i].sample.use == SAMPLE_USE_BLOCKS)
			return true;
	}
	return false;
}

/* No more than the profiler reads: a message that must come would wait behind them, while the
 * profiler may wait for our answer. */
static void tell_found(struct broker *b)
{
	struct broker_standing *s = &b->standing;
	struct message m = {.type = MESSAGE_STANDS};
	size_t n = s->n_found - s->n_told;

	if (n == 0 || !supervisor_has_read(b->supervisor, peer_only(PEER_PROFILER)))
		return;
	n = n < MESSAGE_MAX_STANDS ? n : MESSAGE_MAX_STANDS;
	m.stands.n = (uint32_t)n;
	memcpy(m.stands.threads, &s->found[s->n_told], n * sizeof(*s->found));
	if (supervisor_try_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0) != -EAGAIN)
		s->n_told += n;
}

void broker_forget_standing(struct broker *b)
{
	struct broker_standing *s = &b->standing;

	free(s->tasks);
	free(s->found);
	s->tasks = NULL;
	s->found = NULL;
	s->n = s->next = s->n_found = s->n_told = 0;
}

void broker_end_standing(struct broker *b)
{
	const struct broker_standing *s = &b->standing;
	struct message m = {.type = MESSAGE_STANDS};

	/* Those that were not looked at may be threads of the kernel. */
	m.stands.n_left = (uint32_t)(s->n - s->next + s->n_found - s->n_told);
	if (m.stands.n_left)
		(void)supervisor_try_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	broker_forget_standing(b);
}

/* The profiler asks about each process that it is told of, which takes longer than to look at all
 * threads: what they do counts from then on. */
static void on_standing(void *ctx)
{
	struct broker *b = ctx;
	struct broker_standing *s = &b->standing;
	uint64_t end_ns = clock_monotonic_ns() + (s->next ? SLICE_NS : FIRST_NS);

	for (; s->next < s->n && clock_monotonic_ns() < end_ns; s->next++) {
		struct message_stands *task = &s->found[s->n_found];

		*task = (struct message_stands){.time_ns = 0};
		s->n_found += find_state(s->tasks[s->next], task) && is_target(b, task);
	}
	if (s->next == s->n)
		tell_found(b);
	if (s->next < s->n)
		loop_set_timer(b->loop, s->timer, PAUSE_NS);
	else if (s->n_told < s->n_found)
		loop_set_timer(b->loop, s->timer, TELL_NS);
	else
		broker_forget_standing(b);
}

int broker_add_standing(struct broker *b)
{
	b->standing.timer = loop_add_timer(b->loop, UINT64_MAX, 0, on_standing, b);
	return b->standing.timer < 0 ? b->standing.timer : 0;
}

/* Each switch of each thread is recorded. With those of some CPUs or groups alone nobody would know
 * whether a thread goes on elsewhere. */
static bool captures_host(const struct broker *b)
{
	const struct events_targets *t = &b->events[0].targets;

	return b->options.capture && t->n_pids == 0 && !t->cpus && t->n_cgroups == 0;
}

void broker_tell_standing(struct broker *b)
{
	struct broker_standing *s = &b->standing;
	bool host = captures_host(b);

	if ((!host && b->options.n_pids == 0) || !follows_switches(b))
		return;
	broker_forget_standing(b);
	s->tasks = calloc(MAX_TASKS, sizeof(*s->tasks));
	if (!s->tasks)
		return;
	s->n = host ? tasks_list_host(s->tasks, MAX_TASKS)
		    : events_list_tasks(&b->events[0], s->tasks, MAX_TASKS);
	if (s->n == MAX_TASKS)
		log_warning("there are more than %d threads: of further ones off-CPU time begins "
			    "with their first switch",
			    MAX_TASKS - 1);
	s->found = calloc(s->n + 1, sizeof(*s->found));
	if (s->found)
		on_standing(b);
	else
		broker_forget_standing(b);
}
