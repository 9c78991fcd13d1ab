/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/cmd/notify.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define TEXT_BYTES 512

bool notify_wanted(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && (path[0] == '/' || path[0] == '@') && path[1];
}

void notify_send(const char *format, ...)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;
	const char *path = getenv("NOTIFY_SOCKET");
	char text[TEXT_BYTES];
	va_list ap;
	size_t n;

	if (!notify_wanted() || strlen(path) >= sizeof(to.sun_path))
		return;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	n = strlen(path);
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* the abstract namespace: no 0 at its end */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		log_debug("the service manager cannot be notified: %s", strerror(errno));
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, whose;

	if (!notify_wanted() || !usec ||
	    text_parse_u64(usec, 1, UINT64_MAX / NSEC_PER_USEC, &us) < 0)
		return 0;
	if (pid && (text_parse_u64(pid, 1, INT32_MAX, &whose) < 0 || whose != (uint64_t)getpid()))
		return 0;
	return us * NSEC_PER_USEC;
}
