/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk ctl: one command to the running daemon, its answer on standard output. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/control.h"
#include "util/cleanup.h"
#include "util/text.h"

enum { OPT_SOCKET };

static const struct option_spec option_table[] = {
	{'s', "socket", "PATH", "the daemon's socket; default " CONTROL_DEFAULT_PATH, OPT_SOCKET},
};

static const char *const commands[] = {"status", "flush",     "reload",		"pause",
				       "resume", "set-aside", "clear-set-aside"};

const struct command ctl_command = {
	.name = "ctl",
	.usage = "ctl [-s PATH] status | flush | reload | pause | resume | set-aside | "
		 "clear-set-aside",
	.summary = "ask or tell the running daemon",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.epilog =
		"status   what it does, has lost and holds: lines of a name and a value\n"
		"flush    ends the window now; waits until its profile is handed over to be sent\n"
		"reload   takes the config anew, as SIGHUP does\n"
		"pause    stops sampling; the next profile says for how long\n"
		"resume   goes on\n"
		"set-aside        files that are not read for now, because a process died or took\n"
		"                 too long at them: which, why, and for how long\n"
		"clear-set-aside  reads all of them again\n",
	.words = commands,
	.n_words = ARRAY_SIZE(commands),
};

static int on_option(void *ctx, int id, const char *value)
{
	*(const char **)ctx = value;
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Prints all lines but the last, which is the outcome. */
static int print_answer(FILE *in)
{
	char line[1024];

	while (fgets(line, sizeof(line), in)) {
		if (strcmp(line, "ok\n") == 0)
			return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
		if (strncmp(line, "error: ", 7) == 0) {
			(void)fprintf(stderr, "perfwalk: ctl: %s", line + 7);
			return strncmp(line + 7, "not permitted", 13) == 0 ? EXIT_CODE_NOT_PERMITTED
									   : EXIT_CODE_FAILURE;
		}
		(void)fputs(line, stdout);
	}
	(void)fputs("perfwalk: ctl: the daemon ended before it had answered\n", stderr);
	return EXIT_CODE_FAILURE;
}

static void explain(const char *path, int r)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		(void)fprintf(stderr,
			      "perfwalk: ctl: no daemon listens at %s: start perfwalk run, or give "
			      "its socket with -s (key control in [process])\n",
			      path);
	else
		(void)fprintf(stderr, "perfwalk: ctl: %s: %s%s\n", path, strerror(-r),
			      r == -EACCES ? ": run as root or as a member of perfwalk's group"
					   : "");
}

int ctl_main(int argc, char **argv)
{
	const char *path = CONTROL_DEFAULT_PATH;
	int first = argc, r = options_parse(&ctl_command, argc, argv, on_option, &path, &first);
	FILE *in;

	if (r > 0)
		return EXIT_CODE_OK;
	if (r < 0 ||
	    options_choose(&ctl_command, "command", commands, ARRAY_SIZE(commands), argv[first]) <
		    0 ||
	    options_end(&ctl_command, argc, argv, first + 1) < 0)
		return EXIT_CODE_USAGE;

	(void)signal(SIGPIPE, SIG_IGN);
	r = connect_to(path);
	if (r < 0) {
		explain(path, r);
		return r == -EACCES ? EXIT_CODE_NOT_PERMITTED : EXIT_CODE_FAILURE;
	}
	/* One that is refused is told so and cut off before it has asked. */
	(void)dprintf(r, "%s\n", argv[first]);
	in = fdopen(r, "re");
	if (!in) {
		(void)close_fd(r);
		return EXIT_CODE_FAILURE;
	}
	r = print_answer(in);
	(void)fclose(in);
	return r;
}
