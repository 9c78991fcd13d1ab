/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "src/opener/judge.h"
#include "src/process/judging.h"
#include "src/process/spawn.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/time-share.h"

enum {
	MAX_VERDICTS = 256,
	PERCENT = 1,	 /* of the wall clock */
	OOM_SCORE = 900, /* another can be started at any time */
	MAX_TURNS = 50,	 /* of a millisecond, until one that was killed has ended */
};

struct judge {
	int exe_fd; /* the caller's */
	struct setup_common setup;
	struct time_share share;
	struct {
		struct file_identity file;
		bool yes;
	} verdicts[MAX_VERDICTS]; /* a ring */
	uint32_t n_verdicts;
	pid_t dying[JUDGE_MAX_DYING]; /* 0: none */
	uint64_t n_put_off;
};

int judge_new(struct judge **ret, int exe_fd, const struct setup_common *setup)
{
	struct judge *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->exe_fd = exe_fd;
	j->setup = *setup;
	j->share.percent = PERCENT;
	*ret = j;
	return 0;
}

/* Is there room for one that cannot be ended? */
static bool reap(struct judge *j)
{
	bool room = false;

	for (size_t i = 0; i < JUDGE_MAX_DYING; i++) {
		if (j->dying[i] && waitpid(j->dying[i], NULL, WNOHANG) != 0)
			j->dying[i] = 0;
		room |= !j->dying[i];
	}
	return room;
}

struct judge *judge_free(struct judge *j)
{
	if (j)
		(void)reap(j); /* do not wait for them */
	free(j);
	return NULL;
}

/* One that waits for no disk has ended by then. */
static bool is_gone(pid_t pid)
{
	const struct timespec turn = {.tv_nsec = NSEC_PER_MSEC};

	for (int i = 0; i < MAX_TURNS; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
		(void)nanosleep(&turn, NULL);
	}
	return false;
}

static void end(struct judge *j, pid_t pid)
{
	(void)kill(pid, SIGKILL);
	if (is_gone(pid))
		return;
	for (size_t i = 0; i < JUDGE_MAX_DYING; i++) {
		if (!j->dying[i]) {
			j->dying[i] = pid;
			break;
		}
	}
}

/* The descriptor of a socket to a new one, or -errno. */
static int start(const struct judge *j, int file, pid_t *ret)
{
	struct setup_common setup = j->setup;
	int sock, r = spawn_process(j->exe_fd, JUDGING_NAME, OOM_SCORE, ret, &sock);

	if (r < 0)
		return r;
	setup.privileges.parent_pid = (uint32_t)getpid();
	setup.log_level = log_get_level();
	(void)setup_send(sock, &setup, sizeof(setup), file); /* else it says nothing */
	return sock;
}

/* 1, 0 or -errno. *ret_cpu_ns: what it took. */
static int hear(struct judge *j, int file, uint64_t *ret_cpu_ns)
{
	_cleanup_close_ int sock = -EBADF;
	uint8_t verdict = JUDGING_NO;
	ssize_t n = 0;
	pid_t pid = 0;

	sock = start(j, file, &pid);
	if (sock < 0)
		return sock;
	if (opener_wait(sock, pid))
		n = recv(sock, &verdict, sizeof(verdict), MSG_DONTWAIT);
	*ret_cpu_ns = clock_process_ns(pid);
	end(j, pid);
	if (n != sizeof(verdict))
		log_debug("a judge of a file has said nothing");
	return n == sizeof(verdict) && verdict == JUDGING_YES;
}

int judge_ask(struct judge *j, int fd, const struct file_identity *id)
{
	uint32_t n = j->n_verdicts < MAX_VERDICTS ? j->n_verdicts : MAX_VERDICTS, at;
	uint64_t cpu_ns = 0;
	int r;

	for (uint32_t i = 0; i < n; i++) {
		if (file_identity_equal(&j->verdicts[i].file, id))
			return j->verdicts[i].yes;
	}
	if (!reap(j) || !time_share_begin(&j->share, clock_monotonic_ns())) {
		j->n_put_off++;
		return -EAGAIN;
	}
	r = hear(j, fd, &cpu_ns);
	time_share_end_with(&j->share, clock_monotonic_ns(), cpu_ns);
	if (r < 0)
		return r;
	at = j->n_verdicts++ % MAX_VERDICTS;
	j->verdicts[at].file = *id;
	j->verdicts[at].yes = r > 0;
	return r;
}

uint64_t judge_n_put_off(const struct judge *j)
{
	return j->n_put_off;
}
