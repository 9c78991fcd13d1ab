/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long a child has worked on its present job: by its own CPU time, so that no pause of the
 * machine, no quota and no other process counts. Waiting counts only while the child reads a file
 * or another process's memory, and at most twice the usual time between two looks: a clock may jump
 * when a machine resumes. Waiting for a file counts less, because its disk may be busy with others.
 */
#include <stdint.h>
#include <sys/types.h>

struct status_page;

/* Of one process; the next process begins with all 0 except watch_ns. */
struct effort {
	uint64_t watch_ns;	       /* the usual time between two looks */
	uint64_t job;		       /* status_page.job at the last look */
	uint64_t seen_ns;	       /* the last look (CLOCK_MONOTONIC) */
	uint64_t cpu_ns;	       /* CPU time of the process then */
	uint64_t worked_ns, waited_ns; /* on this job so far, as they count */
};

/* Looks at the process. Returns the nanoseconds spent on its job; 0: it has no job with a limit. */
uint64_t effort_measure(struct effort *e, pid_t pid, const struct status_page *status,
			uint64_t now);
