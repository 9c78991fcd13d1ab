/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the child of perfwalk debug prints. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/symbolizer/setup.h"

struct ask;
struct role;

struct debug_request {
	enum view_mode mode;
	const char *path;
	int fd;		       /* of path */
	const uint64_t *which; /* only that sample, or the row at that address; NULL: all */
	const char *what;      /* the function or marker whose places are wanted; NULL: none */
	bool errors_too;       /* print errors in the file instead of logging them */
	struct ask *ask;       /* for separate debug files */
};

/* Prints samples, rows or places of an open file. The request stays the caller's. 0 or -errno,
 * logged with path and cause. */
int debug_show(struct role *role, const struct debug_request *request, FILE *out);

/* A process, as VIEW_DEBUG_RUNTIME has it in setup.h: its name, and descriptors, which stay the
 * caller's; threads -1: there are none. */
struct debug_process {
	const char *name;
	int memory, images, threads;
	uint64_t n_named;
};

/* Prints its runtimes. 0 or -errno, logged. */
int debug_show_runtime(const struct debug_process *p, FILE *out);
