/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/opener/helper.h"
#include "src/opener/internal.h"
#include "src/opener/judge.h"
#include "src/opener/stuck.h"
#include "src/process/spawn.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* A start opens no untrusted files, so one that takes long is no server's fault: requests are put
 * off until it is done. */
#define START_WAIT_NS (5 * NSEC_PER_SEC) /* of all requests together */
#define START_MAX_NS  (60 * NSEC_PER_SEC)
#define STUCK_SECONDS 60

struct opener_helper {
	int exe_fd; /* the caller's */
	enum sandbox_mode seccomp;
	struct privileges limits;
	struct judge *judge;
	pid_t pid;  /* 0: there is none */
	bool ready; /* it takes requests */
	uint64_t started_ns;
	int sock;
	uint32_t seq;
	struct stuck_table stuck;
	uint64_t cost_ns; /* see opener_helper_cost_ns() */
	struct log_ratelimit late_log, start_log, full_log;
};

int opener_helper_new(struct opener_helper **ret, int exe_fd, const struct privileges *limits,
		      const struct setup_common *judge)
{
	struct opener_helper *h = calloc(1, sizeof(*h));
	int r = h ? judge_new(&h->judge, exe_fd, judge) : -ENOMEM;

	if (r < 0) {
		free(h);
		return r;
	}
	h->exe_fd = exe_fd;
	h->seccomp = judge->seccomp < SANDBOX_N_MODES ? (enum sandbox_mode)judge->seccomp
						      : SANDBOX_ERRNO;
	h->limits = *limits;
	h->limits.parent_pid = (uint32_t)getpid();
	h->sock = -EBADF;
	*ret = h;
	return 0;
}

struct opener_helper *opener_helper_free(struct opener_helper *h)
{
	if (!h)
		return NULL;
	(void)stuck_reap(&h->stuck); /* do not wait for them */
	if (h->pid) {
		(void)kill(h->pid, SIGKILL);
		(void)waitpid(h->pid, NULL, 0);
	}
	(void)close_fd(h->sock);
	judge_free(h->judge);
	free(h);
	return NULL;
}

/* Waits until it says that it takes requests, with a deadline. */
static int wait_ready(int sock, uint64_t deadline)
{
	uint64_t now;
	struct message m;
	int fds[2], r;

	while ((r = message_recv(sock, &m, fds, MSG_DONTWAIT)) == -EAGAIN) {
		struct pollfd p = {.fd = sock, .events = POLLIN};

		now = clock_monotonic_ns();
		if (now >= deadline)
			return -ETIMEDOUT;
		(void)poll(&p, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1);
	}
	if (r <= 0)
		return r < 0 ? r : -ECHILD;
	return m.type == MESSAGE_START ? 0 : -EBADMSG;
}

static int set_up(const struct opener_helper *h)
{
	const struct setup_common setup = {
		.privileges = h->limits,
		.log_level = log_get_level(),
		.seccomp = h->seccomp,
	};

	return setup_send(h->sock, &setup, sizeof(setup), -1);
}

/* Starts the same binary again, so that the helper has nothing of this process's memory. h->pid is
 * set if there is a process, even if its start failed later. */
static int start(struct opener_helper *h)
{
	int r = spawn_process(h->exe_fd, OPENER_NAME, OPENER_OOM_SCORE, &h->pid, &h->sock);

	if (r < 0)
		return r;
	h->ready = false;
	h->started_ns = clock_monotonic_ns();
	return set_up(h);
}

/* Makes sure that a helper takes requests. */
static int get_ready(struct opener_helper *h)
{
	int r = h->pid ? 0 : start(h);

	if (r == 0 && !h->ready)
		r = wait_ready(h->sock, h->started_ns + START_WAIT_NS);
	h->ready = r == 0;
	return r;
}

static bool may_still_start(const struct opener_helper *h, int r)
{
	return r == -ETIMEDOUT && clock_monotonic_ns() - h->started_ns < START_MAX_NS;
}

static struct stuck_subject subject_of(const struct message *ask)
{
	struct stuck_subject s = {.uid = UINT32_MAX};

	switch (ask->type) {
	case MESSAGE_ASK_FILE:
	case MESSAGE_ASK_SEEN_FILE:
	case MESSAGE_ASK_COPY:
		s.pid = ask->ask_file.pid;
		s.major = ask->ask_file.major;
		s.minor = ask->ask_file.minor;
		break;
	case MESSAGE_ASK_ALLOCATOR:
		s.pid = ask->ask_allocator.file.pid;
		s.major = ask->ask_allocator.file.major;
		s.minor = ask->ask_allocator.file.minor;
		break;
	case MESSAGE_ASK_MAPS:
	case MESSAGE_ASK_PERF_MAP:
	case MESSAGE_ASK_MEMORY:
		s.pid = ask->ask_pid.pid;
		break;
	case MESSAGE_ASK_DEBUG_FILE:
		s.pid = ask->ask_debug_file.pid;
		break;
	case MESSAGE_ASK_TABLE:
		s.pid = ask->ask_table.pid;
		break;
	case MESSAGE_ASK_CONTEXT:
		s.pid = ask->ask_context.pid;
		break;
	case MESSAGE_ASK_BLOCKED:
		s.pid = ask->ask_blocked.pid;
		break;
	default:
		break;
	}
	if (s.pid)
		(void)opener_user(s.pid, &s.uid);
	return s;
}

/* Those of /proc wait for nobody's filesystem, but for the process, and all wait for a CPU. */
static void tell_stuck(struct opener_helper *h, const struct stuck_subject *s)
{
	if (!log_ratelimit(&h->late_log, STUCK_SECONDS))
		return;
	if (s->major || s->minor)
		log_warning("a file of process %u (device %u:%u) cannot be opened in time: a "
			    "filesystem that it uses does not answer, or the host is too busy",
			    s->pid, s->major, s->minor);
	else
		log_warning("a file of process %u in /proc, or of its own, cannot be opened in "
			    "time: the process or a filesystem does not answer, or the host is "
			    "too busy",
			    s->pid);
}

/* Said where it concerns others than those who are to blame. */
static void tell_refused(struct opener_helper *h, uint32_t n_stuck)
{
	if (n_stuck >= STUCK_FEW && log_ratelimit(&h->full_log, STUCK_SECONDS))
		log_warning("%u processes that open files are stuck at filesystems that do not "
			    "answer; until they end, %s are opened, and frames of other files "
			    "have no names (files_refused in perfwalk ctl status counts them). To "
			    "end them, unmount these filesystems with umount -f",
			    n_stuck,
			    n_stuck < STUCK_MAX ? "only files of other users and of devices known "
						  "to answer"
						: "no new files");
}

static void tell_no_start(struct opener_helper *h, int r)
{
	if (!log_ratelimit(&h->start_log, STUCK_SECONDS))
		return;
	if (r == -ETIMEDOUT)
		log_warning("the process that opens files takes long to start: the host is very "
			    "busy; files are opened once it runs");
	else
		log_warning("the process that opens files cannot be started: %s", strerror(-r));
}

/* Abandons the helper and its answer. */
static void give_up(struct opener_helper *h, const struct stuck_subject *s)
{
	(void)kill(h->pid, SIGKILL);
	stuck_add(&h->stuck, h->pid, s, clock_monotonic_ns());
	h->sock = close_fd(h->sock);
	h->pid = 0;
}

/* The memory, unless the file holds no runtime: then it is closed. Owns both. */
static int only_if_runtime(struct opener_helper *h, int owned_memory, int owned_file,
			   const struct file_identity *id)
{
	_cleanup_close_ int memory = owned_memory, file = owned_file;
	int r = judge_ask(h->judge, file, id);

	return r > 0 ? TAKE_FD(memory) : r < 0 ? r : -ENOENT;
}

/* Receives its descriptor or error. *ret_late: not answered yet. */
static int receive(struct opener_helper *h, struct file_identity *ret, bool *ret_late)
{
	struct message m;
	int fds[2], r;

	do {
		if (!opener_wait(h->sock, h->pid)) {
			*ret_late = true;
			return -ETIMEDOUT;
		}
		r = message_recv(h->sock, &m, fds, MSG_DONTWAIT);
	} while (r == -EAGAIN);
	if (r <= 0) { /* it died */
		*ret_late = true;
		return -EIO;
	}
	if (m.type != MESSAGE_OPENED || m.seq != h->seq || (m.opened.error == 0 && fds[0] < 0)) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		return -EIO;
	}
	if (fds[1] >= 0)
		return only_if_runtime(h, fds[0], fds[1], &m.opened.file);
	if (m.opened.error == 0)
		*ret = m.opened.file;
	return m.opened.error < 0 ? m.opened.error : fds[0];
}

pid_t opener_helper_pid(const struct opener_helper *h)
{
	return h->pid;
}

enum sandbox_mode opener_helper_seccomp(const struct opener_helper *h)
{
	char text[4096];
	const char *line = NULL;

	if (h->pid && opener_read_proc((uint32_t)h->pid, "status", text, sizeof(text)) == 0)
		line = strstr(text, "\nSeccomp:\t");
	return line && line[strlen("\nSeccomp:\t")] == '2' ? h->seccomp : SANDBOX_NO;
}

/* How long it was ready to run while others had its CPU; 0: unknown. */
static uint64_t starved_ns(pid_t pid)
{
	unsigned long long ran, starved;
	char text[64];

	return opener_read_proc((uint32_t)pid, "schedstat", text, sizeof(text)) == 0 &&
			       sscanf(text, "%llu %llu", &ran, &starved) == 2
		       ? starved
		       : 0;
}

/* Sends a request to the current helper. *ret_late: not answered yet. */
static int request(struct opener_helper *h, const struct message *ask, struct file_identity *ret,
		   bool *ret_late)
{
	uint64_t begin = clock_monotonic_ns(), before = starved_ns(h->pid), took, starved;
	struct message m = *ask;
	int r;

	m.seq = ++h->seq;
	r = message_send(h->sock, &m, NULL, 0);
	*ret_late = r < 0;
	if (r == 0)
		r = receive(h, ret, ret_late);
	took = clock_monotonic_ns() - begin;
	starved = starved_ns(h->pid) - before;
	h->cost_ns += took > starved ? took - starved : 0;
	return r;
}

void opener_helper_prepare(struct opener_helper *h)
{
	int r = h->pid ? 0 : start(h);

	if (r < 0)
		tell_no_start(h, r);
}

int opener_helper_open(struct opener_helper *h, const struct message *ask,
		       struct file_identity *ret)
{
	struct stuck_subject s = subject_of(ask);
	uint32_t n_stuck = stuck_reap(&h->stuck);
	bool late = false;
	int r;

	if (!stuck_allows(&h->stuck, &s, clock_monotonic_ns())) {
		tell_refused(h, n_stuck);
		return -EBUSY;
	}
	r = get_ready(h);
	if (r < 0) {
		tell_no_start(h, r);
		if (h->pid && !may_still_start(h, r))
			give_up(h, &(struct stuck_subject){.uid = UINT32_MAX});
		return r;
	}
	r = request(h, ask, ret, &late);
	if (late) {
		tell_stuck(h, &s);
		give_up(h, &s);
	} else if (r >= 0) {
		stuck_learn(&h->stuck, &s);
	}
	return r;
}

uint64_t opener_helper_n_refused(const struct opener_helper *h)
{
	return h->stuck.n_refused + judge_n_put_off(h->judge);
}

uint64_t opener_helper_cost_ns(const struct opener_helper *h)
{
	return h->cost_ns;
}
