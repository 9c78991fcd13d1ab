/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/effort.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* A disk that stalls recovers within some 30 s, or fails: with this and the usual 3 s, two strikes
 * take longer. */
#define WAITING_DIVISOR 6

/* Does it wait for something itself, such as a disk that does not answer? A process that was
 * stopped, or gets no CPU, does not. */
static bool is_waiting(pid_t pid)
{
	char path[32], text[128];
	_cleanup_close_ int fd = -EBADF;
	const char *state;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && (state[1] == ' ') && (state[2] == 'D' || state[2] == 'S');
}

uint64_t effort_measure(struct effort *e, pid_t pid, const struct status_page *status, uint64_t now)
{
	uint64_t job = __atomic_load_n(&status->job, __ATOMIC_RELAXED), cpu, passed;

	if (!(job & 1))
		return 0;
	cpu = clock_process_ns(pid);
	if (job != e->job) {
		*e = (struct effort){
			.watch_ns = e->watch_ns, .job = job, .seen_ns = now, .cpu_ns = cpu};
		return 0;
	}
	passed = now - e->seen_ns < 2 * e->watch_ns ? now - e->seen_ns : 2 * e->watch_ns;
	if ((status->reading || status->process) && is_waiting(pid))
		e->waited_ns += passed / (status->process ? 1 : WAITING_DIVISOR);
	else if (cpu > e->cpu_ns)
		e->worked_ns += cpu - e->cpu_ns;
	e->seen_ns = now;
	e->cpu_ns = cpu;
	return e->worked_ns + e->waited_ns;
}
