/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

int opener_open_proc(uint32_t pid, const char *name, int flags)
{
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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
