/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk convert, report, diff and debug: what was asked for, and the run. */
#include <stdbool.h>
#include <stdint.h>

#include "src/broker/broker.h"
#include "src/cmd/outputs.h"
#include "src/cmd/session.h"
#include "src/symbolizer/setup.h"

struct supervisor;

struct view {
	const struct command *command;
	struct setup_symbolizer setup;
	const char *symbol, *comm, *container, *service, *trace, *span, *event, *store;
	int table_fd; /* where the table goes */
	uint64_t last_ns;
	char store_label[256];
	const char *inputs[VIEW_MAX_INPUTS];
	int input_fds[VIEW_MAX_INPUTS];
	bool inputs_are_open; /* the caller has opened them */
	uint32_t n_inputs;
	struct outputs outputs;
	uint32_t written_outputs; /* by the child, whole: bit i for the i-th */
	struct session session;
	struct supervisor *supervisor;
	bool no_lines, no_inline;
	bool has_max_rows; /* given, not the default */
	enum config_demangle demangle;
};

/* Into v, whose command and mode are set; texts are argv's. 0; 1: --help was answered; -EINVAL: the
 * user was told what is wrong. */
int view_parse_options(struct view *v, int argc, char **argv);
/* Opens inputs and outputs, lets the child do its work and frees all; the exit code. */
int view_run(struct view *v);
