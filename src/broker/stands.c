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

#define MAX_TASKS 16384

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

void broker_tell_standing(struct broker *b)
{
	_cleanup_free_ pid_t *tasks = calloc(MAX_TASKS, sizeof(*tasks));
	size_t n;

	if (!tasks || b->options.n_pids == 0 || !follows_switches(b))
		return;
	n = events_list_tasks(&b->events[0], tasks, MAX_TASKS);
	if (n == MAX_TASKS)
		log_warning("there are more than %d threads: of further ones off-CPU time begins "
			    "with their first switch",
			    MAX_TASKS - 1);
	for (size_t i = 0; i < n; i++) {
		struct message m = {.type = MESSAGE_STANDS};

		if (find_state(tasks[i], &m) && is_target(b, &m))
			(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	}
}
