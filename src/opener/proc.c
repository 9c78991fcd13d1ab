/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

#define MAX_MAPS_BYTES (UINT64_C(32) << 20)

int opener_open_proc(uint32_t pid, const char *name, int flags)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int opener_thread_stat(uint32_t tid)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "task/%u/stat", tid);
	return opener_open_proc(tid, name, O_RDONLY);
}

int opener_read_proc(uint32_t pid, const char *name, char *text, size_t size)
{
	_cleanup_close_ int fd = opener_open_proc(pid, name, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, size - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return 0;
}

/* Looks through the whole lines in a piece of maps. The *left bytes behind them are moved to its
 * beginning. */
static bool find_line(char *text, size_t n, bool (*wanted)(const char *line, size_t n, void *ctx),
		      void *ctx, size_t *left)
{
	char *line = text, *end = text + n, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		size_t length = (size_t)(newline - line);

		if (wanted(line, length, ctx))
			return true;
		line = newline + 1;
	}
	*left = (size_t)(end - line);
	memmove(text, line, *left);
	return false;
}

int opener_find_line(int maps, bool (*wanted)(const char *line, size_t n, void *ctx), void *ctx)
{
	char text[16384];
	size_t n = 0;
	uint64_t total = 0;

	while (total < MAX_MAPS_BYTES && n < sizeof(text)) {
		ssize_t got = read(maps, text + n, sizeof(text) - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		total += (uint64_t)got;
		if (find_line(text, n + (size_t)got, wanted, ctx, &n))
			return 0;
	}
	return -ENOENT;
}
