/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/process/message.h"
#include "src/process/spawn.h"
#include "util/cleanup.h"

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

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool is_kept(const char *variable, bool network)
{
	static const char proxy[] = "_proxy";
	size_t n = strcspn(variable, "="), n_proxy = strlen(proxy);

	if (begins(variable, "OTEL_") || begins(variable, "DEBUGINFOD_"))
		return false;
	return network || n < n_proxy || strncasecmp(variable + n - n_proxy, proxy, n_proxy) != 0;
}

/* Removes variables with credentials that the child does not need: the config has read them, and
 * the set-up has what the child needs. Only libcurl reads the proxy variables. */
static void leave_credentials(bool network)
{
	char **to = environ;

	for (char **from = environ; from && *from; from++) {
		if (is_kept(*from, network))
			*to++ = *from;
	}
	if (to)
		*to = NULL;
}

void spawn_exec(int exe_fd, const char *name, bool network, int oom_score, int control, int ask)
{
	char title[48];
	char *argv[] = {title, NULL};
	bool may_ask = ask >= 0;
	sigset_t none;
	int exe;

	(void)snprintf(title, sizeof(title), "perfwalk: %s", name);
	/* Out of the terminal's group: Ctrl-C and SIGHUP are the broker's to handle. */
	(void)setsid();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	worsen_oom_score(oom_score);
	leave_credentials(network);
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
	_exit(125);
}
