/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/opener/helper.h"
#include "src/process/credentials.h"
#include "src/process/judging.h"
#include "src/process/role.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

static int complete(int argc, char **argv);

static const struct {
	const struct command *command;
	int (*main)(int argc, char **argv);
} commands[] = {
	{&record_command, record_main},	 {&top_command, top_main},
	{&run_command, run_main},	 {&report_command, report_main},
	{&diff_command, diff_main},	 {&convert_command, convert_main},
	{&ctl_command, ctl_main},	 {&check_command, check_main},
	{&list_command, list_main},	 {&debug_command, debug_main},
	{&completion_command, complete},
};

/* By enum peer. */
static int (*const roles[PEER_N])(void) = {
	[PEER_PROFILER] = role_profiler_main, [PEER_SYMBOLIZER] = role_symbolizer_main,
	[PEER_EXPORTER] = role_exporter_main, [PEER_SCREEN] = role_screen_main,
	[PEER_METRICS] = role_metrics_main,   [PEER_FETCHER] = role_fetcher_main,
	[PEER_READER] = role_reader_main,
};

static int complete(int argc, char **argv)
{
	const struct command *list[ARRAY_SIZE(commands)];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		list[i] = commands[i].command;
	return completion_main(argc, argv, list, ARRAY_SIZE(commands));
}

static void usage(FILE *out)
{
	(void)fputs("perfwalk profiles Linux hosts without eBPF. It samples stacks with "
		    "perf_event_open, unwinds\n"
		    "and symbolizes them on the host, and writes flame graphs, pprof or "
		    "OpenTelemetry profiles.\n"
		    "\n"
		    "Usage: perfwalk COMMAND [OPTIONS]\n"
		    "\n"
		    "Commands:\n",
		    out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(out, "  %-10s %s\n", commands[i].command->name,
			      commands[i].command->summary);
	(void)fputs("\n"
		    "  perfwalk COMMAND --help    options of a command\n"
		    "  perfwalk --version\n"
		    "\n"
		    "To start:  sudo perfwalk record -a -d 10 -o out.html\n",
		    out);
}

static int unknown_command(const char *word)
{
	const char *names[ARRAY_SIZE(commands)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].command->name;
	near = text_nearest(word, names, ARRAY_SIZE(names));
	(void)fprintf(stderr, "perfwalk: unknown command \"%s\"%s%s%s; see perfwalk --help\n", word,
		      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	return EXIT_CODE_USAGE;
}

/* Started with a standard descriptor closed, the first file opened would take its place. */
static void fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	(void)close_fd(fd);
}

/* As the supervisor names its children: "perfwalk: profiler", of a kind with several
 * "perfwalk: reader/3". */
static bool is_role(const char *name, const char *role)
{
	static const char prefix[] = "perfwalk: ";
	size_t n = strlen(role);

	return strncmp(name, prefix, strlen(prefix)) == 0 &&
	       strncmp(name + strlen(prefix), role, n) == 0 &&
	       (!name[strlen(prefix) + n] || name[strlen(prefix) + n] == '/');
}

int main(int argc, char **argv)
{
	credentials_leave_stack();
	fill_standard_descriptors();
	for (int kind = 0; argc == 1 && kind < PEER_N; kind++) {
		if (is_role(argv[0], peer_name((enum peer)kind)))
			return roles[kind]();
	}
	if (argc == 1 && is_role(argv[0], OPENER_NAME))
		return opener_main();
	if (argc == 1 && is_role(argv[0], JUDGING_NAME))
		return judge_main();

	log_open(NULL);
	if (argc < 2) {
		usage(stderr);
		return EXIT_CODE_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return EXIT_CODE_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)puts("perfwalk " PACKAGE_VERSION);
		return EXIT_CODE_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1], commands[i].command->name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	}
	return unknown_command(argv[1]);
}
