/* SPDX-License-Identifier: Apache-2.0 */
/* The files are read by a child without privileges, as those of a report are, some at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/view.h"
#include "src/cmd/windows.h"
#include "src/render/render.h"
#include "src/store/stored.h"
#include "util/clock.h"

struct window_files {
	const struct command *command;
	const struct windows_wanted *wanted;
	const char *store;
	/* The next files; paths are ours, and freed once they are read. */
	char *paths[VIEW_MAX_INPUTS];
	int fds[VIEW_MAX_INPUTS];
	uint32_t n;
	bool has_head; /* of the table, printed */
	int result;    /* the exit code */
};

static void read_files(struct window_files *l)
{
	struct view v = {.command = l->command,
			 .session = SESSION_INIT,
			 .table_fd = STDOUT_FILENO,
			 .trace = l->wanted->trace,
			 .span = l->wanted->span,
			 .service = l->wanted->service,
			 .inputs_are_open = true,
			 .n_inputs = l->n};
	int r;

	if (!l->has_head)
		render_window_head(stdout);
	l->has_head = true;
	(void)fflush(stdout);
	v.setup.view = VIEW_WINDOWS;
	v.setup.of_store = true;
	for (uint32_t i = 0; i < l->n; i++) {
		v.inputs[i] = l->paths[i];
		v.input_fds[i] = l->fds[i];
	}
	r = view_run(&v);
	l->result = l->result == EXIT_CODE_OK ? r : l->result;
	for (uint32_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	l->n = 0;
}

static int on_file(void *ctx, const char *name, int fd, uint64_t bytes)
{
	struct window_files *l = ctx;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return -errno;
	if (asprintf(&l->paths[l->n], "%s/%s", l->store, name) < 0) {
		(void)close_fd(own);
		return -ENOMEM;
	}
	l->fds[l->n++] = own;
	if (l->n == VIEW_MAX_INPUTS)
		read_files(l);
	return 0;
}

int windows_list(const struct command *command, const struct windows_wanted *wanted)
{
	_cleanup_free_ char *found = wanted->store ? NULL : view_find_store();
	const char *store = wanted->store ? wanted->store : found;
	struct window_files l = {.command = command, .wanted = wanted, .store = store};
	uint64_t now = clock_realtime_ns();
	uint64_t since = wanted->last_ns && now > wanted->last_ns ? now - wanted->last_ns : 0;
	uint32_t n = 0;
	int r;

	r = store ? stored_each(store, since, on_file, &l, &n) : -ENOMEM;
	if (l.n)
		read_files(&l);
	if (r == 0 && n == 0)
		r = -ENOENT;
	if (r < 0)
		view_say_store(store ? store : "the store", r);
	return r < 0 ? EXIT_CODE_FAILURE : l.result;
}
