/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A Go program that a test builds for itself, with its symbols and without. */
#include <stdbool.h>
#include <stdio.h>

#include "tests/unit/compile.h"
#include "tests/unit/workshop.h"

/* Builds "full" and "stripped" in dir, then runs a shell command there that makes the files `made`.
 * false: there is no Go; the output says so. */
static inline bool build_go(const char *source, const char *command, const char *made)
{
	char all[128];

	(void)snprintf(all, sizeof(all), "full stripped %s", made);
	write_file("main.go", source);
	if (test_compile(dir, all, "%s && %s",
			 "go build -o full main.go && "
			 "go build -ldflags='-s -w' -o stripped main.go",
			 command) == 0)
		return true;
	(void)printf("skipped: no go, or it cannot build\n");
	return false;
}
