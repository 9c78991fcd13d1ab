/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads do when the off-CPU time of processes begins: no switch shows that until they
 * continue, or stop. The threads of a process that hangs, or only computes, never do.
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
#define SLICE_NS  (5 * NSEC_PER_MSEC) /* of looking, between which others are served */
#define PAUSE_NS  (2 * NSEC_PER_MSEC)

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
static bool read_place(const char *text, struct message *m)
{
	const char *p = strrchr(text, ' ');
	char *end;

	if (!p || p == text)
		return false;
	m->stands.ip = strtoull(p + 1, NULL, 16);
	while (p > text && p[-1] != ' ')
		p--;
	m->stands.sp = strtoull(p, &end, 16);
	return end > p;
}

/* It is interruptibly (S) or not (D) asleep, in that process, and at that place; or it runs, or
 * could (R). */
static bool find_state(pid_t tid, struct message *m)
{
	char text[2048];
	const char *state, *tgid;

	if (read_of_task(tid, "status", text, sizeof(text)) < 0)
		return false;
	state = strstr(text, "\nState:\t");
	tgid = strstr(text, "\nTgid:\t");
	if (!state || !tgid || !strchr("SDR", state[strlen("\nState:\t")]))
		return false;
	m->stands.runs = state[strlen("\nState:\t")] == 'R';
	m->stands.pid = (uint32_t)atoi(tgid + strlen("\nTgid:\t"));
	m->stands.tid = (uint32_t)tid;
	m->stands.time_ns = clock_monotonic_ns();
	return m->stands.runs ||
	       (read_of_task(tid, "syscall", text, sizeof(text)) == 0 && read_place(text, m));
}

/* Children from before are not asked for. */
static bool is_target(const struct broker *b, const struct message *m)
{
	uint32_t id = b->options.threads ? m->stands.tid : m->stands.pid;

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

/* As many as the profiler takes now: it is killed if it does not read what it must. */
static void on_standing(void *ctx)
{
	struct broker *b = ctx;
	struct broker_standing *s = &b->standing;
	uint64_t end = clock_monotonic_ns() + SLICE_NS;

	for (; s->next < s->n && clock_monotonic_ns() < end; s->next++) {
		struct message m = {.type = MESSAGE_STANDS};

		if (find_state(s->tasks[s->next], &m) && is_target(b, &m) &&
		    supervisor_try_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0) ==
			    -EAGAIN)
			break;
	}
	if (s->next < s->n) {
		loop_set_timer(b->loop, s->timer, PAUSE_NS);
		return;
	}
	free(s->tasks);
	s->tasks = NULL;
	s->n = s->next = 0;
}

int broker_add_standing(struct broker *b)
{
	b->standing.timer = loop_add_timer(b->loop, UINT64_MAX, 0, on_standing, b);
	return b->standing.timer < 0 ? b->standing.timer : 0;
}

void broker_tell_standing(struct broker *b)
{
	struct broker_standing *s = &b->standing;

	if (b->options.n_pids == 0 || !follows_switches(b))
		return;
	if (!s->tasks)
		s->tasks = calloc(MAX_TASKS, sizeof(*s->tasks));
	if (!s->tasks)
		return;
	s->next = 0;
	s->n = events_list_tasks(&b->events[0], s->tasks, MAX_TASKS);
	if (s->n == MAX_TASKS)
		log_warning("there are more than %d threads: of further ones off-CPU time begins "
			    "with their first switch",
			    MAX_TASKS - 1);
	on_standing(b);
}
