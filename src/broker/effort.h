/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long a child has been at its present work: by its own CPU time, so that no pause of the
 * machine, no quota and no other process counts. Waiting counts while it reads a file, but no more
 * than was looked on: a clock may jump when a machine goes on.
 */
#include <stdint.h>
#include <sys/types.h>

struct status_page;

/* Of one process: another one begins with all 0 but watch_ns. */
struct effort {
	uint64_t watch_ns; /* about how often it is measured */
	uint64_t job;	   /* status_page.job of the work */
	uint64_t seen_ns;  /* the last look */
	uint64_t cpu_ns;   /* of the process then */
	uint64_t spent_ns; /* on this work so far */
};

/* Nanoseconds so far; 0 while it is at no work that may not last. */
uint64_t effort_measure(struct effort *e, pid_t pid, const struct status_page *status,
			uint64_t now);
