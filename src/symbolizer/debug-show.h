/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk debug: what the child does. */
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
	const char *what;      /* of which the places are wanted; NULL: none */
	bool errors_too;       /* what is wrong with what is printed, too, and not logged */
	struct ask *ask;       /* for separate debug files */
};

/* Prints samples, rows or places of an open file. 0 or -errno, logged with path and cause. The
 * request is the caller's. */
int debug_show(struct role *role, const struct debug_request *request, FILE *out);

/*
 * VIEW_DEBUG_RUNTIME: memory and threads as in setup.h, both the caller's; threads -1: there are
 * none. name: of the process.
 */
int debug_show_runtime(const char *name, int memory, uint64_t image, int threads, FILE *out);
