/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A perf.data file for convert and report: the tree of a capture, which walks its stacks. */
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
	/* What is made of it */
	const struct setup_symbolizer *view;
	const char *symbol, *comm, *container, *service, *event;
};

/* 0 or -errno, logged with cause; either way *ret_written has a bit for each output that is whole.
 */
int view_perf_data(const struct view_perf_data *view, uint32_t *ret_written);
