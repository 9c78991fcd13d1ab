/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk ctl: one command to the running daemon, its answer on standard output. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/broker/control.h"
#include "src/cmd/cmd.h"
#include "src/cmd/ctl-status.h"
#include "util/cleanup.h"
#include "util/text.h"

struct ctl_request {
	const char *path;
	bool all, json;
};

static const struct option_spec option_table[] = {
	{'s', "socket", "PATH", "the daemon's socket; default " CONTROL_DEFAULT_PATH,
	 OPTION_TEXT(struct ctl_request, path)},
	{'a', "all", NULL, "status: all values, one name and value on each line",
	 OPTION_FLAG(struct ctl_request, all)},
	{'j', "json", NULL, "status: the same as one JSON object",
	 OPTION_FLAG(struct ctl_request, json)},
};

static const char *const words[] = {"status", "flush",	   "reload",	     "pause",
				    "resume", "set-aside", "clear-set-aside"};

const struct command ctl_command = {
	.name = "ctl",
	.usage = "ctl [-s PATH] [--all | --json] status | flush | reload | pause | resume | "
		 "set-aside | clear-set-aside",
	.summary = "query and control the running daemon",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.words = words,
	.n_words = ARRAY_SIZE(words),
	.epilog = "status           shows what it does, its losses, its backlog and its cost\n"
		  "flush            ends the interval now, and waits until its profile is handed "
		  "over\n"
		  "reload           reloads the config, as SIGHUP does\n"
		  "pause            stops sampling; the next profile has the length of the pause\n"
		  "resume           resumes sampling\n"
		  "set-aside        lists files and processes that are set aside because whoever "
		  "read\n"
		  "                 them died or took too long: which, why, and for how long\n"
		  "clear-set-aside  reads all of them again\n",
};

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

/* All lines but the last, which is the outcome, go to out. */
static int read_answer(FILE *in, FILE *out)
{
	char line[1024];

	while (fgets(line, sizeof(line), in)) {
		if (strcmp(line, "ok\n") == 0)
			return EXIT_CODE_OK;
		if (strncmp(line, "error: ", 7) == 0) {
			(void)fprintf(
				stderr, "perfwalk: ctl: %s%s",
				strcmp(line + 7, "unknown command\n") == 0
					? "the daemon is of another version: systemctl restart "
					  "perfwalk; it says: "
					: "",
				line + 7);
			return strncmp(line + 7, "not permitted", 13) == 0 ? EXIT_CODE_NOT_PERMITTED
									   : EXIT_CODE_FAILURE;
		}
		(void)fputs(line, out);
	}
	(void)fputs("perfwalk: ctl: the daemon ended before it answered\n", stderr);
	return EXIT_CODE_FAILURE;
}

static void explain(const char *path, int r)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		(void)fprintf(stderr,
			      "perfwalk: ctl: no daemon listens at %s: start perfwalk run, or name "
			      "its socket with -s (key control in [process])\n",
			      path);
	else
		(void)fprintf(stderr, "perfwalk: ctl: %s: %s%s\n", path, strerror(-r),
			      r == -EACCES ? ": run as root or as a member of perfwalk's group"
					   : "");
}

static int print_answer(const struct ctl_request *q, bool status, FILE *in)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r = f ? read_answer(in, f) : EXIT_CODE_FAILURE;

	if (!f || fclose(f) != 0)
		return EXIT_CODE_FAILURE;
	if (r != EXIT_CODE_OK)
		return r;
	if (q->all || !status)
		(void)fputs(text, stdout);
	else if (q->json)
		ctl_status_print_json(text, stdout);
	else
		ctl_status_print(text, time(NULL), stdout);
	return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}

static int ask(const struct ctl_request *q, const char *command)
{
	int r = connect_to(q->path);
	FILE *in;

	if (r < 0) {
		explain(q->path, r);
		return r == -EACCES ? EXIT_CODE_NOT_PERMITTED : EXIT_CODE_FAILURE;
	}
	/* The daemon answers and disconnects a client that may not ask before it has asked. */
	(void)dprintf(r, "%s\n", command);
	in = fdopen(r, "re");
	if (!in) {
		(void)close_fd(r);
		return EXIT_CODE_FAILURE;
	}
	r = print_answer(q, strcmp(command, "status") == 0, in);
	(void)fclose(in);
	return r;
}

/* Options may come before and after the command. */
static int parse(struct ctl_request *q, int argc, char **argv, const char **ret_command)
{
	int first = argc, second = 0, r;

	r = options_parse(&ctl_command, argc, argv, NULL, q, &first);
	if (r != 0)
		return r;
	*ret_command = argv[first];
	if (options_choose(&ctl_command, "command", argv[first]) < 0)
		return -EINVAL;
	r = options_parse(&ctl_command, argc - first, argv + first, NULL, q, &second);
	if (r == 0)
		r = options_end(&ctl_command, argc, argv, first + second);
	if (r != 0)
		return r;
	if (!(q->all || q->json) || (strcmp(*ret_command, "status") == 0 && !(q->all && q->json)))
		return 0;
	return options_refuse(&ctl_command, "%s",
			      q->all && q->json ? "--all and --json exclude each other: choose one"
						: "only status takes --all and --json");
}

int ctl_main(int argc, char **argv)
{
	struct ctl_request q = {.path = CONTROL_DEFAULT_PATH};
	const char *command;
	int r = parse(&q, argc, argv, &command);

	if (r != 0)
		return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	(void)signal(SIGPIPE, SIG_IGN);
	return ask(&q, command);
}
