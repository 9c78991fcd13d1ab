/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files that a command is asked to write (-o, --format): chosen and opened here, filled by the
 * symbolizer. */
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

/* For the options -o PATH and --format NAME, and once all options are known (diff: the outputs hold
 * the difference of two profiles). 0; -EINVAL: the user was told what is wrong. */
int outputs_add(struct outputs *o, const struct command *c, const char *path);
int outputs_set_format(struct outputs *o, const struct command *c, const char *name);
int outputs_choose_formats(struct outputs *o, const struct command *c, bool diff);

/* The format of the i-th, once it is chosen. */
const struct format *outputs_format(const struct outputs *o, uint32_t i);
/* One of them is standard output. */
bool outputs_use_standard(const struct outputs *o);

/*
 * Opens all; files that are new get this mode. Nothing is emptied yet: a file may be an input too,
 * and what is in it outlives a run that is refused. The symbolizer empties each when it has
 * something to write. 0, or -errno, logged; close them in either case.
 */
int outputs_open(struct outputs *o, mode_t mode);
void outputs_close(struct outputs *o);
/* Removes files that this run made and could not fill. Written has a bit for each that is whole,
 * which may well be empty: the folded stacks of an idle host. */
void outputs_remove_unwritten(const struct outputs *o, uint32_t written);
