/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk debug: what the unwinder knows of a binary, and how it walked a recorded sample. The
 * file is opened here and read by a child without privileges, as those of perfwalk convert are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/view.h"
#include "src/symbolizer/setup.h"

static const char *const words[] = {"sample", "unwind"};

const struct command debug_command = {
	.words = words,
	.n_words = ARRAY_SIZE(words),
	.name = "debug",
	.usage = "debug sample FILE [N] | debug unwind FILE [ADDRESS]",
	.summary = "show how a recorded sample is walked, and the unwind rows of a binary",
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
		  "\n"
		  "Examples:\n"
		  "  perfwalk debug unwind /usr/bin/true\n"
		  "  perfwalk debug sample plt.samples.gz 3\n",
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

int debug_main(int argc, char **argv)
{
	struct view v = {
		.command = &debug_command, .session = SESSION_INIT, .table_fd = STDOUT_FILENO};
	static const enum view_mode modes[] = {VIEW_DEBUG_SAMPLE, VIEW_DEBUG_UNWIND};
	int first, r = options_parse(&debug_command, argc, argv, NULL, NULL, &first);

	if (r > 0)
		return EXIT_CODE_OK;
	if (r == 0)
		r = options_choose(&debug_command, "command", argv[first]);
	if (r < 0)
		return EXIT_CODE_USAGE;
	argc -= first;
	argv += first;
	v.setup.view = modes[r];
	if (argc < 2)
		return complain(v.setup.view == VIEW_DEBUG_SAMPLE
					? "sample needs a file of recorded samples"
					: "unwind needs a program or library",
				NULL);
	if (argc > 3)
		return complain("takes one file and one number", argv[3]);
	if (argc == 3 && parse_number(argv[2], &v.setup.which) < 0)
		return complain(v.setup.view == VIEW_DEBUG_SAMPLE
					? "expected the number of a sample, at least 0"
					: "expected an address such as 0x27249",
				argv[2]);
	v.setup.has_which = argc == 3;
	v.inputs[0] = argv[1];
	v.input_fds[0] = -EBADF;
	v.n_inputs = 1;
	return view_run(&v);
}
