/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/broker/child.h"
#include "src/process/sandbox.h"
#include "src/process/spawn.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"
#include "util/log.h"

#define BACKOFF_MIN_NS (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (30 * NSEC_PER_SEC)
#define BACKOFF_RESET_NS                                                                           \
	(30 * NSEC_PER_SEC) /* a child that lived this long starts at the minimum again */
#define SEND_TIMEOUT_S 5

void child_init(struct child *c, const struct peer_row *row, uint32_t index)
{
	*c = (struct child){
		.id = {row->kind, index},
		.row = row,
		.control = -EBADF,
		.ask = -EBADF,
		.status_fd = -EBADF,
	};
	(void)snprintf(c->name, sizeof(c->name), row->max > 1 ? "%s/%u" : "%s",
		       peer_name(row->kind), index);
}

/* A process that waits for a filesystem which does not answer cannot be killed. */
static void wait_a_while(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 5 * NSEC_PER_MSEC};

	for (int i = 0; i < 400 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		(void)nanosleep(&pause, NULL);
}

void child_deinit(struct child *c)
{
	/* First: a child that is still there would tell of a broker that has gone. */
	if (c->pid > 0) {
		(void)kill(c->pid, SIGKILL);
		wait_a_while(c->pid);
	}
	(void)close_fd(c->status_fd);
	if (c->status)
		(void)munmap(c->status, sizeof(*c->status));
}

/* Made for its first start, and kept for those that follow. */
static int make_page(struct child *c)
{
	if (c->status_fd >= 0)
		return 0;
	c->status_fd = status_page_new(&c->status);
	if (c->status_fd < 0)
		log_error("no memory to share with the children: %s; before Linux 3.17 a file in "
			  "/dev/shm or /tmp is needed for that",
			  strerror(-c->status_fd));
	return c->status_fd < 0 ? c->status_fd : 0;
}

int child_start(struct child *c, int exe_fd)
{
	struct timeval patience = {.tv_sec = SEND_TIMEOUT_S};
	int control[2] = {-EBADF, -EBADF}, ask[2] = {-EBADF, -EBADF}, r;

	c->start_at_ns = 0;
	c->started_ns = clock_monotonic_ns();
	r = make_page(c);
	if (r == 0)
		r = fdmsg_pair(control, 0);
	if (r == 0 && c->row->may_ask)
		r = fdmsg_pair(ask, 0);
	if (r < 0)
		goto out;
	c->pid = fork();
	if (c->pid < 0) {
		r = -errno;
		c->pid = 0;
		goto out;
	}
	if (c->pid == 0)
		spawn_exec(exe_fd, c->name, c->row->oom_score, control[1], ask[1]);

	c->control = TAKE_FD(control[0]);
	c->ask = TAKE_FD(ask[0]);
	c->n_starts++;
	c->effort = (struct effort){.watch_ns = CHILD_WATCH_NS};
	c->n_undead = 0;
	c->stopping = c->restart = c->took_too_long = c->unwanted = c->deaf = false;
	c->asker = (struct asker){.row = c->row, .id = c->id, .name = c->name, .pid = c->pid};
	/* A set-up is more than the socket holds: it is waited for, but not for ever. */
	(void)setsockopt(c->control, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
out:
	for (int i = 0; i < 2; i++) {
		(void)close_fd(control[i]);
		(void)close_fd(ask[i]);
	}
	return r;
}

bool child_is_there(const struct child *c)
{
	return c->pid || c->start_at_ns;
}

uint64_t child_start_later(struct child *c)
{
	uint64_t now = clock_monotonic_ns();

	if (now - c->started_ns >= BACKOFF_RESET_NS || !c->backoff_ns)
		c->backoff_ns = BACKOFF_MIN_NS;
	else if (c->backoff_ns < BACKOFF_MAX_NS)
		c->backoff_ns =
			c->backoff_ns * 2 < BACKOFF_MAX_NS ? c->backoff_ns * 2 : BACKOFF_MAX_NS;
	c->start_at_ns = now + c->backoff_ns;
	return c->backoff_ns;
}

int child_send(struct child *c, const struct message *m, const int *fds, size_t n_fds)
{
	if (c->control < 0 || c->deaf)
		return -ENOTCONN;
	return child_sent(c, message_send(c->control, m, fds, n_fds));
}

int child_send_now(struct child *c, const struct message *m, const int *fds, size_t n_fds)
{
	if (c->control < 0 || c->deaf)
		return -ENOTCONN;
	return child_sent(c, message_try_send(c->control, m, fds, n_fds));
}

/* A child that does not read must not make the broker wait: no timers, no other children would be
 * served until the watchdog acts. */
int child_sent(struct child *c, int r)
{
	if (r != -EAGAIN || c->deaf || !c->pid)
		return r;
	log_warning("the %s (pid %d) does not read its messages: killing it", c->name, (int)c->pid);
	c->deaf = true;
	(void)kill(c->pid, SIGKILL);
	return r;
}

void child_clear_page(const struct child *c)
{
	struct status_page *status;

	if (status_page_map(c->status_fd, &status) == 0) {
		memset(status, 0, sizeof(*status));
		(void)munmap(status, sizeof(*status));
	}
}

void child_describe_death(int wait_status, char *buf, size_t size)
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(wait_status),
			       strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(buf, size, "exited with status %d", WEXITSTATUS(wait_status));
}
