/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk check: how a cause, its fix and a command for the end are said. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/check.h"
#include "util/cleanup.h"

void check_say(enum check_level level, const char *name, const char *format, ...)
{
	static const char *const marks[] = {"ok", "note", "BAD"};
	va_list ap;

	(void)printf("%-5s %-16s ", marks[level], name);
	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	(void)putchar('\n');
}

void check_say_fix(const char *text)
{
	(void)printf("%-22s -> %s\n", "", text);
}

void check_add_command(struct check *c, const char *format, ...)
{
	size_t n = strlen(c->commands);
	va_list ap;
	int length;

	length = snprintf(c->commands + n, sizeof(c->commands) - n, "    %s",
			  geteuid() == 0 ? "" : "sudo ");
	va_start(ap, format);
	if (length > 0 && n + (size_t)length < sizeof(c->commands))
		(void)vsnprintf(c->commands + n + length, sizeof(c->commands) - n - (size_t)length,
				format, ap);
	va_end(ap);
	n = strlen(c->commands);
	if (n + 1 < sizeof(c->commands))
		memcpy(c->commands + n, "\n", 2);
}

void check_add_sysctl(struct check *c, const char *name, long value)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
	for (char *p = path; *p; p++)
		*p = *p == '.' ? '/' : *p;
	if (geteuid() != 0 || access(path, W_OK) == 0)
		check_add_command(c, "sysctl %s=%ld", name, value);
}

long check_read_number(const char *path, long fallback)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return fallback;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}
