/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk convert, report, diff and debug: their options, and the run. */
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
	uint32_t written_outputs; /* that the child has completed: bit i for the i-th */
	struct session session;
	struct supervisor *supervisor;
	bool no_lines, no_inline;
	bool has_max_rows; /* --top was given */
	enum config_demangle demangle;
};

/* Parses the options into v, whose command and mode are set; texts are argv's. 0; 1: --help was
 * printed; -EINVAL: an error was printed. */
int view_parse_options(struct view *v, int argc, char **argv);
/* The value of an option that is an id of so many hexadecimal digits. 0; -EINVAL: an error was
 * printed. */
int view_check_id(const struct command *c, const char *option, const char *value, size_t n);
/* The directory of the local store, by the daemon's config; the caller frees it. NULL: no
 * memory. */
char *view_find_store(void);
/* Logs why nothing of that store can be read (-ENOENT: it has no file of that time). */
void view_say_store(const char *path, int e);
/* Opens inputs and outputs, runs the child, and frees everything. Returns the exit code. */
int view_run(struct view *v);
