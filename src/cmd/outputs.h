/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files that a command writes (-o, --format): it chooses and opens them, the symbolizer writes
 * them. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/broker/broker.h"
#include "src/cmd/options.h"

struct format;

/* All zero: none. */
struct outputs {
	struct broker_output items[BROKER_MAX_OUTPUTS]; /* paths are argv's */
	bool created[BROKER_MAX_OUTPUTS];		/* by outputs_open() */
	uint32_t n;
	const struct format *format; /* of all; NULL: by their suffixes */
};

/* The options -o PATH and --format NAME; and, once all options are known, the choice of formats
 * (diff: the outputs hold the difference of two profiles). 0; -EINVAL: an error was printed. */
int outputs_add(struct outputs *o, const struct command *c, const char *path);
int outputs_set_format(struct outputs *o, const struct command *c, const char *name);
int outputs_choose_formats(struct outputs *o, const struct command *c, bool diff);

/* The format of the i-th output, once it is chosen; static. */
const struct format *outputs_format(const struct outputs *o, uint32_t i);
/* Is one of them standard output? */
bool outputs_use_standard(const struct outputs *o);

/*
 * Opens all outputs; new files get this mode. It truncates none: a file may be an input, too, and
 * keeps its contents if the run fails. The symbolizer truncates each when it has something to
 * write. 0 or -errno (logged); call outputs_close() in either case.
 */
int outputs_open(struct outputs *o, mode_t mode);
void outputs_close(struct outputs *o);
/* Removes files that this run created and did not complete. written: bit i for the i-th output that
 * is complete, even if it is empty, such as the folded stacks of an idle host. */
void outputs_remove_unwritten(const struct outputs *o, uint32_t written);
