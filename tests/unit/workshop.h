/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The directory of a test's files, and commands that run in it. The test begins with
 * test_make_directory(dir), which removes it at the end, too.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/unit/test.h"

static char dir[] = "/tmp/perfwalk-test.XXXXXX";

/* Runs a shell command in dir. Returns its exit status; -1: a signal ended it. */
static inline int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int run(const char *format, ...)
{
	char command[4096];
	int n = snprintf(command, sizeof(command), "cd %s && ", dir), status;
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(command + n, sizeof(command) - (size_t)n, format, ap);
	va_end(ap);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The output of a shell command in dir; the caller calls pclose(). */
static inline FILE *run_read(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline FILE *run_read(const char *format, ...)
{
	char command[4096];
	int n = snprintf(command, sizeof(command), "cd %s && ", dir);
	va_list ap;
	FILE *f;

	va_start(ap, format);
	(void)vsnprintf(command + n, sizeof(command) - (size_t)n, format, ap);
	va_end(ap);
	f = popen(command, "r");
	CHECK(f != NULL);
	return f;
}

/* Creates a file in dir; the caller calls fclose(). */
static inline FILE *create_file(const char *name)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	CHECK(f != NULL);
	return f;
}

static inline void write_file(const char *name, const char *text)
{
	FILE *f = create_file(name);

	CHECK(fputs(text, f) >= 0);
	CHECK_INT(fclose(f), ==, 0);
}

/* Opens a file of dir, or an absolute path; the caller owns the descriptor. */
static inline int open_file(const char *name)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : dir,
		       name[0] == '/' ? "" : "/", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	return fd;
}
