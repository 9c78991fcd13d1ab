/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a user is told on standard error, for tests. */
#include <fcntl.h>

#include "tests/unit/test.h"

static char told[4096];
static int told_stderr = -1, told_file = -1;

/* What goes to standard error from here on is in told after told_end(). */
static inline void told_begin(void)
{
	(void)fflush(stderr);
	told_stderr = dup(STDERR_FILENO);
	told_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(told_stderr >= 0 && told_file >= 0);
	CHECK_INT(dup2(told_file, STDERR_FILENO), ==, STDERR_FILENO);
}

static inline void told_end(void)
{
	ssize_t n;

	(void)fflush(stderr);
	CHECK_INT(dup2(told_stderr, STDERR_FILENO), ==, STDERR_FILENO);
	n = pread(told_file, told, sizeof(told) - 1, 0);
	(void)close(told_stderr);
	(void)close(told_file);
	CHECK_INT(n, >=, 0);
	told[n] = '\0';
}
