/* SPDX-License-Identifier: Apache-2.0 */
#include "src/metrics/health.h"

#include <stdint.h>
#include <stdio.h>

#include "src/process/statistics.h"
#include "util/clock.h"

/* The rings are read every 200 ms; a busy host may delay the profiler. */
#define STALE_NS (5 * NSEC_PER_SEC)

bool health_is_alive(const struct statistics *s, char *why, size_t size)
{
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].wanted && !s->processes[i].pid) {
			(void)snprintf(why, size, "the %s is not running", s->processes[i].name);
			return false;
		}
	}
	if (s->drained_before_ns == UINT64_MAX) {
		(void)snprintf(why, size, "the profiler has just been started");
		return false;
	}
	if (s->drained_before_ns > STALE_NS) {
		(void)snprintf(why, size, "the rings were last read %.1f s ago",
			       (double)s->drained_before_ns / 1e9);
		return false;
	}
	(void)snprintf(why, size, "ok: all processes run, the rings were read %.1f s ago",
		       (double)s->drained_before_ns / 1e9);
	return true;
}

bool health_is_ready(const struct statistics *s, const char *const *names, char *why, size_t size)
{
	int n;

	if (!health_is_alive(s, why, size))
		return false;
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].wanted && !s->processes[i].ready) {
			(void)snprintf(why, size, "the %s is starting", s->processes[i].name);
			return false;
		}
	}
	if (s->paused || s->n_cpus == 0) {
		(void)snprintf(why, size,
			       s->paused ? "sampling is paused: perfwalk ctl resume"
					 : "no CPU is sampled");
		return false;
	}
	n = snprintf(why, size, "ok: %u CPUs are sampled", s->n_cpus);
	/* An unreachable destination is not a failure: queue and spool are for that. */
	for (uint32_t i = 0; i < s->n_destinations; i++) {
		if (s->destinations[i].down && n >= 0 && (size_t)n < size)
			n += snprintf(why + n, size - (size_t)n,
				      "; export:%s is unreachable, %llu profiles wait", names[i],
				      (unsigned long long)s->destinations[i].queue_payloads);
	}
	return true;
}
