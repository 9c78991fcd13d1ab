/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/process/credentials.h"
#include "src/process/message.h"
#include "src/process/role.h"
#include "src/process/spawn.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"

/* Whom the kernel kills first when memory is short. Worse is always allowed. */
static void worsen_oom_score(int worse)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int score, n;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	score = atoi(text) + worse;
	n = snprintf(text, sizeof(text), "%d", score < 1000 ? score : 1000);
	(void)!pwrite(fd, text, (size_t)n, 0);
}

/* Removes variables that the config has read, and all with credentials: what a child needs is in
 * its set-up. */
static void leave_variables(void)
{
	char **to = environ;

	for (char **from = environ; from && *from; from++) {
		if (strncmp(*from, "OTEL_", 5) != 0 && !credentials_in_variable(*from))
			*to++ = *from;
	}
	if (to)
		*to = NULL;
}

/* An emulator may lack execveat(), which the C library takes for granted. */
static void execute_by_name(int exe, char *const argv[])
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", exe);
	(void)execve(path, argv, environ);
}

void spawn_exec(int exe_fd, const char *name, int oom_score, int control, int ask)
{
	char title[48];
	char *argv[] = {title, NULL};
	bool may_ask = ask >= 0;
	sigset_t none;
	int exe;

	(void)snprintf(title, sizeof(title), "perfwalk: %s", name);
	/* Out of the terminal's group: Ctrl-C and SIGHUP are the broker's to handle. One that came
	 * since the fork is pending here, too. */
	(void)setsid();
	role_ignore_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	worsen_oom_score(oom_score);
	leave_variables();
	/* None may sit where another is to go. */
	exe = fcntl(exe_fd, F_DUPFD_CLOEXEC, 10);
	control = fcntl(control, F_DUPFD_CLOEXEC, 10);
	if (exe < 0 || control < 0)
		_exit(125);
	if (may_ask) {
		ask = fcntl(ask, F_DUPFD_CLOEXEC, 10);
		if (ask < 0 || dup2(ask, PROTOCOL_ASK_FD) < 0)
			_exit(125);
	}
	if (dup2(control, PROTOCOL_CONTROL_FD) < 0)
		_exit(125);
	(void)fexecve(exe, argv, environ);
	execute_by_name(exe, argv);
	_exit(125);
}

int spawn_process(int exe_fd, const char *name, int oom_score, pid_t *ret_pid, int *ret_sock)
{
	int pair[2], r = fdmsg_pair(pair, 0);
	pid_t pid;

	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		spawn_exec(exe_fd, name, oom_score, pair[1], -EBADF);
	r = pid < 0 ? -errno : 0;
	(void)close_fd(pair[1]);
	if (r < 0) {
		(void)close_fd(pair[0]);
		return r;
	}
	*ret_pid = pid;
	*ret_sock = pair[0];
	return 0;
}
