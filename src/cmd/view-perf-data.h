/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* perf.data files for convert and report: the processes of a capture walk the stacks. */
#include <stdbool.h>

#include "src/cmd/outputs.h"
#include "src/symbolizer/setup.h"

struct view_perf_data {
	const char *path;
	int fd; /* of the file; the caller's */
	const struct outputs *outputs;
	int print_fd; /* for the report; -1: none */
	bool lines, inlined;
	enum config_demangle demangle;
	/* What to show of it. */
	const struct setup_symbolizer *view;
	const char *symbol, *comm, *container, *service, *event;
};

/* Everything in view is borrowed. 0 or -errno, logged with cause. In either case *ret_written has a
 * bit for each complete output. */
int view_perf_data(const struct view_perf_data *view, uint32_t *ret_written);
