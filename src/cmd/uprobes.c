/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cmd/uprobes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/view.h"
#include "src/opener/opener.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/memory-file.h"

#define MAX_TEXT 8192

/* The file that a process sees there, which may be in a container; else the host's. */
static int open_file(const struct sample_uprobe *u, pid_t pid, char *error, size_t n_error)
{
	int fd = opener_file_of_process((uint32_t)pid, u->path);

	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && pid && kill(pid, 0) < 0 && errno == ESRCH)
		fd = -ESRCH; /* /proc has nothing of it */
	if (fd == -ENOENT && pid)
		snprintf(error, n_error, "process %d sees no such file: %s", (int)pid, u->path);
	else if (fd == -ESRCH)
		snprintf(error, n_error, "no process %d: it has ended or never existed", (int)pid);
	else if (fd == -ENOENT)
		snprintf(error, n_error,
			 "there is no such file: %s; that of a container is "
			 "/proc/PID/root%s, or name one of its processes by -p PID",
			 u->path, u->path);
	else
		snprintf(error, n_error, "%s cannot be opened: %s", u->path, strerror(-fd));
	return fd;
}

/* A process of its own: the event loop and the signals of this one are not disturbed. */
static int read_file(const struct sample_uprobe *u, int fd, int table_fd)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0) {
		struct view v = {.command = &debug_command,
				 .session = SESSION_INIT,
				 .table_fd = table_fd,
				 .symbol = u->what,
				 .inputs = {u->path},
				 .input_fds = {fd},
				 .inputs_are_open = true,
				 .n_inputs = 1};

		v.setup.view = u->marker ? VIEW_DEBUG_MARKER : VIEW_DEBUG_FUNCTION;
		v.setup.errors_too = true;
		_exit(view_run(&v));
	}
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE_OK ? 0 : -ENOENT;
}

/* Lines "OFFSET COUNTER", or "error: TEXT". How many. */
static int read_places(int table_fd, struct uprobe_site sites[UPROBE_MAX_SITES], char *error,
		       size_t n_error)
{
	char text[MAX_TEXT], *p = text;
	ssize_t got = pread(table_fd, text, sizeof(text) - 1, 0);
	uint32_t n = 0;

	if (got <= 0)
		return -EIO;
	text[got] = '\0';
	if (strncmp(text, "error: ", 7) == 0) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(error, n_error, "%.1000s", text + 7);
		return -ENOENT;
	}
	while (n < UPROBE_MAX_SITES) {
		uint64_t offset = strtoull(p, &p, 0);

		if (*p != ' ')
			break;
		sites[n].counter = strtoull(p, &p, 0);
		sites[n++].offset = offset;
	}
	return (int)n;
}

int uprobes_place(const struct sample_event *e, pid_t pid, char *error, size_t n_error)
{
	struct sample_uprobe *u = (struct sample_uprobe *)e->uprobe; /* ours, if it is one */
	_cleanup_close_ int fd = -EBADF, table_fd = -EBADF;
	struct uprobe_site sites[UPROBE_MAX_SITES] = {0};
	char why[1024] = "its symbols cannot be read";
	int r;

	if (!u)
		return 0;
	fd = open_file(u, pid, error, n_error);
	if (fd < 0)
		return fd;
	table_fd = memory_file_new("places");
	r = table_fd < 0 ? table_fd : read_file(u, fd, table_fd);
	if (r != 0 && r != -ENOENT) {
		snprintf(error, n_error, "%s: %s", u->path, strerror(-r));
		return r;
	}
	r = read_places(table_fd, sites, why, sizeof(why));
	if (r > 0)
		r = uprobe_place(u, TAKE_FD(fd), sites, (uint32_t)r, why, sizeof(why));
	if (r < 0)
		snprintf(error, n_error, "%s: %s", u->path, why);
	return r < 0 ? r : 0;
}
