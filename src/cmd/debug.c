/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk debug: what the unwinder knows of a binary, how it walked a recorded sample, and where a
 * probe of user code goes. The
 * file is opened here and read by a child without privileges, as those of perfwalk convert are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/debug-runtime.h"
#include "src/cmd/view.h"
#include "src/symbolizer/setup.h"
#include "util/runtime-rows.h"

static const char *const words[] = {"function", "marker", "runtime", "sample", "unwind"};

const struct command debug_command = {
	.words = words,
	.n_words = ARRAY_SIZE(words),
	.name = "debug",
	.usage = "debug sample FILE [N] | debug unwind FILE [ADDRESS] | debug function FILE NAME | "
		 "debug marker FILE [PROVIDER:NAME] | debug runtime PID",
	.summary = "show how a recorded sample is walked, the unwind rows of a binary, its markers",
	.epilog = "sample: each frame of the N-th sample (the first is 0; without N, all) of a "
		  "file of\n"
		  "recorded samples: the rule, its source, the bytes of the stack that were read, "
		  "and\n"
		  "why the walk ended.\n"
		  "unwind: the rows of a program or library, from .eh_frame, .debug_frame, Go's "
		  "table or\n"
		  "the linker's stubs; with an ADDRESS (as in the file), only the row that covers "
		  "it.\n"
		  "A row is CFA=... and the registers that differ from the caller's: [c-16] means "
		  "saved\n"
		  "16 bytes below the CFA, {...} is a DWARF expression.\n"
		  "function, marker: the places of the probes of -e uprobe:FILE:NAME and\n"
		  "-e usdt:FILE:PROVIDER:NAME: the offset in the file, and the offset of the "
		  "marker's\n"
		  "counter of watchers (0: none). marker without a name lists all USDT markers of "
		  "the\n"
		  "file.\n"
		  "runtime: the runtime of a process (one of " RUNTIME_NAMES "): its\n"
		  "release, the source of each offset in its memory, and stacks: of the threads "
		  "in code of\n"
		  "the runtime, or of all threads of " RUNTIME_NAMES_WITH_CHAIN ". It stops the "
		  "threads for\n"
		  "a moment.\n"
		  "\n"
		  "Examples:\n"
		  "  perfwalk debug unwind /usr/bin/true\n"
		  "  perfwalk debug sample plt.samples.gz 3\n"
		  "  perfwalk debug marker /usr/bin/python3\n"
		  "  perfwalk debug runtime 1234\n",
};

static int complain(const char *what, const char *text)
{
	(void)options_refuse(&debug_command, "%s%s%s; see perfwalk debug --help", what,
			     text ? ": " : "", text ? text : "");
	return EXIT_CODE_USAGE;
}

/* Decimal, or with 0x. */
static int parse_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}

static const struct {
	enum view_mode mode;
	const char *missing;  /* when no file is named */
	const char *expected; /* as the second argument; NULL: a name */
} things[] = {
	{VIEW_DEBUG_FUNCTION, "function needs a program or library, and a function", NULL},
	{VIEW_DEBUG_MARKER, "marker needs a program or library", NULL},
	{VIEW_DEBUG_RUNTIME, "runtime needs a process id", NULL},
	{VIEW_DEBUG_SAMPLE, "sample needs a file of recorded samples",
	 "expected the number of a sample, at least 0"},
	{VIEW_DEBUG_UNWIND, "unwind needs a program or library",
	 "expected an address such as 0x27249"},
};

int debug_main(int argc, char **argv)
{
	struct view v = {
		.command = &debug_command, .session = SESSION_INIT, .table_fd = STDOUT_FILENO};
	int first, r = options_parse(&debug_command, argc, argv, NULL, NULL, &first), i;

	if (r > 0)
		return EXIT_CODE_OK;
	i = r == 0 ? options_choose(&debug_command, "command", argv[first]) : r;
	if (i < 0)
		return EXIT_CODE_USAGE;
	argc -= first;
	argv += first;
	v.setup.view = things[i].mode;
	if (argc < 2 || (argc < 3 && things[i].mode == VIEW_DEBUG_FUNCTION))
		return complain(things[i].missing, NULL);
	if (argc > 3)
		return complain("takes one file and one number or name", argv[3]);
	if (things[i].mode == VIEW_DEBUG_RUNTIME)
		return argc > 2 ? complain("runtime takes one process", argv[2])
				: debug_runtime(&v, argv[1]);
	if (argc == 3 && !things[i].expected)
		v.symbol = argv[2];
	else if (argc == 3 && parse_number(argv[2], &v.setup.which) < 0)
		return complain(things[i].expected, argv[2]);
	v.setup.has_which = argc == 3 && things[i].expected;
	v.inputs[0] = argv[1];
	v.input_fds[0] = -EBADF;
	v.n_inputs = 1;
	return view_run(&v);
}
