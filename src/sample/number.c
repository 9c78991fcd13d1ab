/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "util/cleanup.h"

long event_read_number(const char *path, long fallback)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long v;

	if (n <= 0)
		return fallback;
	text[n] = '\0';
	v = strtol(text, &end, 10);
	return end == text ? fallback : v;
}
