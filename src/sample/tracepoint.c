/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format file has one line for each field, as in
 *
 *	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
 *
 * The declaration is in C: the name is its last word, before any "[16]".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/sample/tracepoint.h"
#include "util/cleanup.h"

#define MAX_OFFSET 65536 /* no record is larger */

static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static int read_text(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0)
		return -errno;
	while (n + 1 < size && got > 0) {
		got = read(fd, buf + n, size - 1 - n);
		if (got < 0)
			return -errno;
		n += (size_t)got;
	}
	buf[n] = '\0';
	return got > 0 ? -E2BIG : (int)n;
}

int tracefs_open(const char *file, int flags)
{
	int r = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/events", roots[i]);
		if (access(path, F_OK) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", roots[i], file);
		fd = open(path, flags | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		r = -errno;
	}
	return r;
}

int tracepoint_read(const char *name, const char *file, char *buf, size_t size)
{
	const char *colon = strchr(name, ':');
	bool mounted = false;

	if (!colon)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		char path[256];
		struct stat st;
		int r;

		(void)snprintf(path, sizeof(path), "%s/events", roots[i]);
		if (stat(path, &st) < 0)
			continue;
		mounted = true;
		r = snprintf(path, sizeof(path), "%s/events/%.*s/%s/%s", roots[i],
			     (int)(colon - name), name, colon + 1, file);
		if (r >= (int)sizeof(path))
			return -ENAMETOOLONG;
		r = read_text(path, buf, size);
		if (r != -ENOENT)
			return r;
	}
	return mounted ? -ENOENT : -ENODEV;
}

/* Reads the number of "\toffset:24;", up to MAX_OFFSET. */
static bool find_number(const char *line, const char *end, const char *key, uint32_t *ret)
{
	const char *at = memmem(line, (size_t)(end - line), key, strlen(key));
	unsigned long value;
	char *stop;

	if (!at)
		return false;
	at += strlen(key);
	value = strtoul(at, &stop, 10);
	if (stop == at || *stop != ';' || value > MAX_OFFSET)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* Does "field:char prev_comm[16]" declare it? */
static bool declares(const char *declaration, size_t n, const char *name)
{
	size_t m = strlen(name);
	const char *bracket = memchr(declaration, '[', n);

	if (bracket)
		n = (size_t)(bracket - declaration);
	return n > m && memcmp(declaration + n - m, name, m) == 0 &&
	       strchr(" *\t", declaration[n - m - 1]);
}

bool tracepoint_find_field(const char *format, const char *name, struct tracepoint_field *ret)
{
	const char *line = format;

	while ((line = strstr(line, "\tfield:"))) {
		const char *end = strchr(line, '\n'), *semicolon;
		struct tracepoint_field f;
		uint32_t is_signed = 0;

		line += strlen("\tfield:");
		end = end ? end : line + strlen(line);
		semicolon = memchr(line, ';', (size_t)(end - line));
		if (!semicolon || !declares(line, (size_t)(semicolon - line), name))
			continue;
		if (!find_number(semicolon, end, "\toffset:", &f.offset) ||
		    !find_number(semicolon, end, "\tsize:", &f.size))
			return false;
		/* Missing before Linux 2.6.32. */
		(void)find_number(semicolon, end, "\tsigned:", &is_signed);
		f.is_signed = is_signed != 0;
		*ret = f;
		return true;
	}
	return false;
}

bool tracepoint_next_field(const char **at, char *ret_name, size_t n_name)
{
	const char *line;

	while ((line = strstr(*at, "\tfield:"))) {
		const char *start = line + strlen("\tfield:"), *end = start + strcspn(start, ";\n"),
			   *name;

		*at = end;
		while (end > start && end[-1] == ']') {
			while (end > start && *--end != '[')
				;
		}
		name = end;
		while (name > start && !strchr(" *\t", name[-1]))
			name--;
		if (**at == ';' && name < end && (size_t)(end - name) < n_name) {
			(void)snprintf(ret_name, n_name, "%.*s", (int)(end - name), name);
			return true;
		}
	}
	return false;
}
