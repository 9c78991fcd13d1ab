/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk debug: what the child does. */
#include <stdint.h>
#include <stdio.h>

#include "src/symbolizer/setup.h"

struct role;

/*
 * Prints samples or rows of an open file; which: only that sample, or the row at that address. 0 or
 * -errno, logged with path and cause. fd stays the caller's.
 */
int debug_show(struct role *role, enum view_mode mode, const char *path, int fd,
	       const uint64_t *which, FILE *out);
