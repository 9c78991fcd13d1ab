/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "src/broker/effort.h"
#include "src/broker/tasks.h"
#include "src/process/status-page.h"
#include "util/clock.h"

/* A disk that stalls recovers within some 30 s, or fails: with this and the usual 3 s, two strikes
 * take longer. */
#define WAITING_DIVISOR 6

/* Does it wait for something itself, such as a disk that does not answer? A process that was
 * stopped, or gets no CPU, does not. */
static bool is_waiting(pid_t pid)
{
	int n_threads;
	char state = tasks_state(pid, &n_threads);

	return state == 'D' || state == 'S';
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
