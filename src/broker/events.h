/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One of the broker's perf events: on all CPUs of the host or some of them; what runs there, or
 * some tasks, or some cgroups. Their rings are mapped here only to be held: a ring lives as long as
 * somebody maps it, so what the kernel wrote while a profiler was dead is there for the next one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/sample/sample.h"
#include "util/array.h"
#include "util/log.h"

#define EVENTS_MAX_CPUS	  4096
#define EVENTS_MAX_TASKS  65536
#define EVENTS_MAX_COPIES 64

struct cpu_events {
	struct sample_cpu events;
	struct ring sample, sideband; /* held only */
	uint64_t enabled_ns;	      /* sample_enabled_ns() at the last look; 0: none yet */
	uint64_t refilled_ns;	      /* when the budget was given anew; 0: not since it counts */
};

/* What is sampled; all borrowed for the life of the events. */
struct events_targets {
	const pid_t *pids; /* n_pids; none: the whole host */
	size_t n_pids;
	bool threads;	       /* pids are threads: they alone, not what they make */
	const bool *cpus;      /* EVENTS_MAX_CPUS of them: which; NULL: all */
	const int *cgroup_fds; /* n_cgroups directories, none inside another; none: any. Not with
				  pids */
	size_t n_cgroups;
};

struct events {
	struct events_targets targets; /* set before events_probe() */
	struct sample_options sample;  /* as the kernel grants them */
	struct sample_features features;
	/* Samples a second of each CPU; 0: any. Only with a period and of no tasks. */
	uint32_t budget;
	/* All CPUs, since the budget was used up, until it was given anew. */
	uint64_t stood_still_ns;
	struct log_ratelimit used_up;
	ARRAY(struct cpu_events) cpus;
	ARRAY(struct sample_cpu) attached; /* further tasks, sharing the rings */
	/* Further probes of its kind, sharing the rings. Borrowed. */
	ARRAY(const struct sample_uprobe *) copies;
	struct log_ratelimit refused; /* of CPUs that came online; each is tried every second */
};

void events_init(struct events *e);
void events_deinit(struct events *e);

/* Finds out which of the wanted features the kernel has. Errors of this and of events_open() are
 * logged with cause and remedy. 0 or -errno. */
int events_probe(struct events *e, const struct sample_options *want);
/* Opens n events of the same targets, disabled, on every online CPU that is asked for. 0; -ESRCH:
 * no such process; -ENODEV: none of the CPUs is online; -errno. */
int events_open(struct events *e, uint32_t n);
void events_close(struct events *e);
int events_enable(struct events *e, bool enable);
/* Once a second, while they are enabled: the budget of the next. */
void events_refill(struct events *e);

/* The same probe in another file, on all CPUs, as long as the events are open; each has the budget
 * again. Until it is removed it must exist. 0; -errno, logged. enable: it counts at once. */
int events_add_copy(struct events *e, const struct sample_uprobe *copy, bool enable);
void events_remove_copy(struct events *e, const struct sample_uprobe *copy);

/*
 * Opens on a CPU that came online: for tasks, for those of the targets and their descendants that
 * are alive now. enable: they count at once. NULL: it is there already or not asked for, or cannot
 * be opened (logged, once a minute).
 */
struct cpu_events *events_add_cpu(struct events *e, int cpu, bool enable);
/*
 * Stack copies of another size from now on: new sample events that write into the rings that are
 * there. On a CPU where that fails it stays as it was (logged). 0; -ENOTSUP: tasks or several
 * cgroups are sampled, whose events cannot be replaced one by one.
 */
int events_resize_stacks(struct events *e, uint32_t stack_bytes, bool enable);
/* The same for events that wake whoever polls them at each sample, or no more. */
int events_wake_each(struct events *e, bool wake, bool enable);
/* Closes; the last one takes its row. Nothing when it is not there. */
void events_remove_cpu(struct events *e, int cpu);
/* Called at each look at enabled events: has the CPU been offline since the last one? */
bool events_died(struct cpu_events *c);
