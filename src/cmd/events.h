/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The broker's perf events: all CPUs of the host, or some tasks on all CPUs. Their rings are mapped
 * here only to be held: a ring lives as long as somebody maps it, so what the kernel wrote while a
 * profiler was dead is there for the next one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/sample/sample.h"
#include "util/array.h"

#define EVENTS_MAX_CPUS	 4096
#define EVENTS_MAX_TASKS 65536

struct cpu_events {
	struct sample_cpu events;
	struct ring sample, sideband; /* held only */
	uint64_t enabled_ns;	      /* sample_enabled_ns() at the last look; 0: none yet */
};

struct events {
	const pid_t *pids; /* n_pids, borrowed; none: the whole host */
	size_t n_pids;
	struct sample_options sample; /* as the kernel grants them */
	struct sample_features features;
	ARRAY(struct cpu_events) cpus;
	ARRAY(struct sample_cpu) attached; /* further tasks, sharing the rings */
};

void events_init(struct events *e, const pid_t *pids, size_t n_pids);
void events_deinit(struct events *e);

/* What the kernel can do of what is wanted. Errors of this and of events_open() are logged with
 * cause and remedy. 0 or -errno. */
int events_probe(struct events *e, const struct sample_options *want);
/* Opens, disabled, on every online CPU. 0; -ESRCH: no such process; -errno. */
int events_open(struct events *e);
void events_close(struct events *e);
int events_enable(const struct events *e);

/* Opens on a CPU that came online. NULL: it is there already, or cannot be opened (logged). */
struct cpu_events *events_add_cpu(struct events *e, int cpu);
/* Closes; the last one takes row i. */
void events_remove_cpu(struct events *e, uint32_t i);
/* Called at each look at enabled events: has the CPU been offline since the last one? */
bool events_died(struct cpu_events *c);
