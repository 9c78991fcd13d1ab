/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define STARVING_NS (5 * NSEC_PER_SEC)	  /* a process that gets no CPU is not stuck */
#define DEADLINE_NS (200 * NSEC_PER_MSEC) /* the asker waits for longer (src/process/ask.c) */

/* Is it runnable, so that it waits for no server? */
static bool is_runnable(pid_t pid)
{
	char path[32], text[512], *end;
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	(void)close_fd(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

/* Does a process that is late only need a CPU? It is not starving if it has used one for long since
 * it was late: a stranger gives it that much to do. *late_cpu_ns: 0 the first time. */
static bool is_starving(pid_t pid, uint64_t *late_cpu_ns)
{
	uint64_t cpu_ns = clock_process_ns(pid);

	if (*late_cpu_ns == 0)
		*late_cpu_ns = cpu_ns;
	return cpu_ns - *late_cpu_ns < DEADLINE_NS && is_runnable(pid);
}

bool opener_wait(int sock, pid_t pid)
{
	uint64_t begin = clock_monotonic_ns(), deadline = begin + DEADLINE_NS, late_cpu_ns = 0;

	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		uint64_t now = clock_monotonic_ns();

		if (now >= deadline && now - begin < STARVING_NS && is_starving(pid, &late_cpu_ns))
			deadline = now + DEADLINE_NS / 10;
		if (now >= deadline)
			return false;
		if (poll(&p, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1) > 0)
			return true;
	}
}
