/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs that a test compiles for itself. It takes most of the time of such a test, and every
 * build runs the test: where TEST_COMPILED names a directory, what one build compiled the next one
 * takes (tests/run.sh).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Kept by a sum of the command and of all that it can read. Nothing is written over: a daemon of
 * another test may have the program that ran. */
static const char test_compile_script[] =
	"cd \"$WHERE\" || exit 1\n"
	"read_sources() { cat *.c *.cc *.go *.h *.s *.dwo 2>/dev/null; }\n"
	"sum=$({ echo \"$COMMAND\"; read_sources; } | cksum | tr ' ' -)\n"
	"kept=${TEST_COMPILED:+$TEST_COMPILED/$sum}\n"
	"replace() { cp --remove-destination \"$@\"; }\n"
	"if [ -d \"$kept\" ]; then touch \"$kept\"; replace \"$kept\"/* .; exit; fi\n"
	"eval \"$COMMAND\" || exit\n"
	"[ -n \"$kept\" ] || exit 0\n"
	"mkdir -p \"$kept.$$\" && cp $MADE \"$kept.$$\" || exit\n"
	"mv -T \"$kept.$$\" \"$kept\" 2>/dev/null || rm -rf \"$kept.$$\"\n"; /* another was first */

/* Runs a shell command in the directory dir, which makes the files `made` of sources there. Returns
 * its exit status, or -1. */
static inline int test_compile(const char *dir, const char *made, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static inline int test_compile(const char *dir, const char *made, const char *format, ...)
{
	char command[1024];
	va_list ap;
	int status;

	va_start(ap, format);
	(void)vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	(void)setenv("WHERE", dir, 1);
	(void)setenv("MADE", made, 1);
	(void)setenv("COMMAND", command, 1);
	status = system(test_compile_script);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
