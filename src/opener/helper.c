/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/opener/helper.h"
#include "src/opener/internal.h"
#include "src/process/privileges.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fdmsg.h"
#include "util/log.h"

#define STARVING_NS   (5 * NSEC_PER_SEC)    /* who gets no CPU is not stuck */
#define DEADLINE_NS   (200 * NSEC_PER_MSEC) /* who asks waits for 300 ms */
#define STUCK_SECONDS 60

/* Whom a request is about. */
struct subject {
	uint32_t pid, major, minor; /* 0: none; 0, 0: not known */
};

struct opener_helper {
	enum sandbox_mode seccomp;
	pid_t pid; /* 0: there is none */
	int sock;
	uint32_t seq;
	struct stuck {
		pid_t pid; /* 0: free */
		struct subject subject;
	} stuck[OPENER_MAX_STUCK];
	struct log_ratelimit told;
};

/* ---- In the helper ---- */

static int open_asked(const struct message *ask)
{
	struct file_identity id;

	switch (ask->type) {
	case MESSAGE_ASK_FILE:
		return opener_mapped_file(ask, &id);
	case MESSAGE_ASK_RECORDED_FILE:
		return opener_recorded_file(ask, &id);
	case MESSAGE_ASK_PERF_MAP:
		return opener_perf_map(ask->ask_pid.pid);
	case MESSAGE_ASK_DEBUG_FILE:
		return opener_debug_file(ask->ask_debug_file.pid, ask->ask_debug_file.build_id,
					 ask->ask_debug_file.n_build_id, ask->ask_debug_file.path);
	case MESSAGE_ASK_SPLIT_FILE:
		return opener_split_file(ask->ask_split_file.path);
	default:
		return -EOPNOTSUPP;
	}
}

/* Events, sockets and directories that must not outlive who owns them. */
static void close_all_but(int keep)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd > STDERR_FILENO && fd != keep && fd != dirfd(d))
			(void)close(fd);
	}
	if (d)
		(void)closedir(d);
}

/*
 * No Landlock: who is in it may not look into processes that are outside, which is what it is for.
 * Where there are no filters, the log of the others says so.
 */
static void confine(enum sandbox_mode seccomp)
{
	int r = privileges_keep_opening();

	if (r < 0)
		log_warning("what opens files keeps all privileges: %s", strerror(-r));
	r = sandbox_filter_calls(SANDBOX_OPENER, seccomp);
	if (r < 0)
		log_debug("no seccomp filter: %s", strerror(-r));
}

__attribute__((noreturn)) static void serve(int sock, pid_t parent, enum sandbox_mode seccomp)
{
	struct message ask, answer;
	int fds[2];
	sigset_t none;

	(void)prctl(PR_SET_NAME, "pw-opener");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* To end in good order is for the others. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	close_all_but(sock);
	confine(seccomp);
	while (getppid() == parent && message_recv(sock, &ask, fds, 0) > 0) {
		int fd = open_asked(&ask);

		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		answer = (struct message){.type = MESSAGE_ANSWER, .seq = ask.seq};
		answer.answer.error = fd < 0 ? fd : 0;
		if (message_send(sock, &answer, &fd, fd >= 0) < 0)
			break;
		(void)close_fd(fd);
	}
	_exit(0);
}

/* ---- In the process that asks ---- */

int opener_helper_new(struct opener_helper **ret, enum sandbox_mode seccomp)
{
	struct opener_helper *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->seccomp = seccomp;
	h->sock = -EBADF;
	*ret = h;
	return 0;
}

struct opener_helper *opener_helper_free(struct opener_helper *h)
{
	if (!h)
		return NULL;
	for (int i = 0; i < OPENER_MAX_STUCK; i++) {
		if (h->stuck[i].pid) /* not to be waited for */
			(void)waitpid(h->stuck[i].pid, NULL, WNOHANG);
	}
	if (h->pid) {
		(void)kill(h->pid, SIGKILL);
		(void)waitpid(h->pid, NULL, 0);
	}
	(void)close_fd(h->sock);
	free(h);
	return NULL;
}

static int start(struct opener_helper *h)
{
	pid_t parent = getpid(), pid;
	int pair[2], r = fdmsg_pair(pair, 0);

	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		serve(pair[1], parent, h->seccomp);
	r = pid < 0 ? -errno : 0;
	(void)close_fd(pair[1]);
	if (r < 0) {
		(void)close_fd(pair[0]);
		return r;
	}
	h->pid = pid;
	h->sock = pair[0];
	return 0;
}

static void reap(struct opener_helper *h)
{
	for (int i = 0; i < OPENER_MAX_STUCK; i++) {
		if (h->stuck[i].pid && waitpid(h->stuck[i].pid, NULL, WNOHANG) != 0)
			h->stuck[i].pid = 0;
	}
}

static struct subject subject_of(const struct message *ask)
{
	switch (ask->type) {
	case MESSAGE_ASK_FILE:
		return (struct subject){ask->ask_file.pid, ask->ask_file.major,
					ask->ask_file.minor};
	case MESSAGE_ASK_PERF_MAP:
		return (struct subject){ask->ask_pid.pid, 0, 0};
	case MESSAGE_ASK_DEBUG_FILE:
		return (struct subject){ask->ask_debug_file.pid, 0, 0};
	default:
		return (struct subject){0, 0, 0};
	}
}

static bool is_same(const struct subject *a, const struct subject *b)
{
	return a->pid == b->pid ||
	       ((a->major || a->minor) && a->major == b->major && a->minor == b->minor);
}

/* Where the next late one is noted; NULL: s has to be refused. */
static struct stuck *find_place(struct opener_helper *h, const struct subject *s)
{
	struct stuck *place = NULL;

	for (int i = 0; i < OPENER_MAX_STUCK; i++) {
		if (!h->stuck[i].pid)
			place = &h->stuck[i];
		else if (is_same(&h->stuck[i].subject, s))
			return NULL;
	}
	return place;
}

/* It is on its own now; what it may still say nobody hears. */
static void give_up(struct opener_helper *h, struct stuck *place, const struct subject *s)
{
	if (log_ratelimit(&h->told, STUCK_SECONDS))
		log_warning("a file of process %u (device %u:%u) cannot be opened in time; a "
			    "filesystem that it uses does not answer",
			    s->pid, s->major, s->minor);
	(void)kill(h->pid, SIGKILL);
	*place = (struct stuck){h->pid, *s};
	h->sock = close_fd(h->sock);
	h->pid = 0;
}

/* It would go on if it were given a CPU, so it waits for nobody's answer. */
static bool is_running(pid_t pid)
{
	char path[32], text[512], *end;
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	(void)close_fd(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

/* Its descriptor, or error. *ret_late: it has none yet. */
static int receive(struct opener_helper *h, bool *ret_late)
{
	uint64_t begin = clock_monotonic_ns(), deadline = begin + DEADLINE_NS, now;
	struct message m;
	int fds[2], r;

	for (;;) {
		struct pollfd p = {.fd = h->sock, .events = POLLIN};

		r = message_recv(h->sock, &m, fds, MSG_DONTWAIT);
		if (r != -EAGAIN)
			break;
		now = clock_monotonic_ns();
		if (now >= deadline && now - begin < STARVING_NS && is_running(h->pid))
			deadline = now + DEADLINE_NS / 10;
		if (now >= deadline) {
			*ret_late = true;
			return -ETIMEDOUT;
		}
		(void)poll(&p, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1);
	}
	if (r <= 0) { /* it died */
		*ret_late = true;
		return -EIO;
	}
	(void)close_fd(fds[1]);
	if (m.type != MESSAGE_ANSWER || m.seq != h->seq || (m.answer.error == 0 && fds[0] < 0)) {
		(void)close_fd(fds[0]);
		return -EIO;
	}
	return m.answer.error < 0 ? m.answer.error : fds[0];
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

int opener_helper_open(struct opener_helper *h, const struct message *ask)
{
	struct subject s = subject_of(ask);
	struct message m = *ask;
	struct stuck *place;
	bool late = false;
	int r;

	reap(h);
	place = find_place(h, &s);
	if (!place)
		return -ENOTSUP;
	r = h->pid ? 0 : start(h);
	if (r < 0)
		return r;
	m.seq = ++h->seq;
	r = message_send(h->sock, &m, NULL, 0);
	if (r == 0)
		r = receive(h, &late);
	else
		late = true;
	if (late)
		give_up(h, place, &s);
	return r;
}
