/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The subcommands. Each gets its own argv (argv[0] is its name) and returns the exit code. */
#include "src/cmd/options.h"

/* Stable; documented in perfwalk(1). */
enum exit_code {
	EXIT_CODE_OK,
	EXIT_CODE_FAILURE,
	EXIT_CODE_USAGE, /* usage or config */
	EXIT_CODE_NOT_PERMITTED,
	EXIT_CODE_NOT_SUPPORTED,     /* by this host */
	EXIT_CODE_DATA_LOST,	     /* with --strict */
	EXIT_CODE_OWN_FAILURE = 125, /* with a command to run: perfwalk itself failed */
	EXIT_CODE_CANNOT_EXECUTE = 126,
	EXIT_CODE_NOT_FOUND = 127,
};

extern const struct command record_command, top_command, run_command, report_command, diff_command,
	convert_command, ctl_command, check_command, list_command, debug_command,
	completion_command;

int record_main(int argc, char **argv);
int top_main(int argc, char **argv);
int run_main(int argc, char **argv);
int report_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int convert_main(int argc, char **argv);
int ctl_main(int argc, char **argv);
int check_main(int argc, char **argv);
int list_main(int argc, char **argv);
int debug_main(int argc, char **argv);
/* commands: all n of them, in the order of --help. */
int completion_main(int argc, char **argv, const struct command *const *commands, size_t n);

/* The exit code for an error of broker_new(). */
int exit_code_of(int error);
