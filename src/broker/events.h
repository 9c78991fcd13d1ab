/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One of the broker's perf events, on all or some CPUs of the host, for all that runs there, for
 * some tasks or for some cgroups. The broker maps the rings only to keep them: a ring lives as long
 * as a process maps it, so the next profiler finds what the kernel wrote while none ran.
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
	struct ring sample, sideband; /* kept, not read */
	uint64_t enabled_ns;	      /* sample_enabled_ns() at the last look; 0: none yet */
	uint64_t refilled_ns;	      /* the last grant of a budget; 0: none since it counts */
	bool rests;		      /* it had enough samples, until events_refill() */
};

/* What to sample. Every pointer is borrowed for the life of the events. */
struct events_targets {
	const pid_t *pids; /* n_pids; none: the whole host */
	size_t n_pids;
	bool threads;	  /* pids are threads, which are sampled without their descendants */
	const bool *cpus; /* EVENTS_MAX_CPUS items: is the CPU wanted? NULL: all are */
	/* n_cgroups directories, none inside another; none: all cgroups. Not together with pids. */
	const int *cgroup_fds;
	size_t n_cgroups;
};

struct events {
	struct events_targets targets; /* set before events_probe() */
	struct sample_options sample;  /* as the kernel grants them */
	struct sample_features features;
	/* The most samples a second on each CPU; 0: no limit. Only with a period, and not for
	 * tasks. */
	uint32_t budget;
	/* How long it stood still without budget: the sum over all CPUs. */
	uint64_t stood_still_ns;
	struct log_ratelimit used_up;
	ARRAY(struct cpu_events) cpus;
	ARRAY(struct sample_cpu) attached; /* of further tasks; they share the rings */
	/* The same probe in further files; they share the rings, too. Borrowed. */
	ARRAY(const struct sample_uprobe *) copies;
	struct log_ratelimit refused; /* CPUs that came online; each is tried every second */
};

void events_init(struct events *e);
void events_deinit(struct events *e);

/* Finds out which of the wanted features the kernel has. This and events_open() log errors with
 * cause and remedy. 0 or -errno. */
int events_probe(struct events *e, const struct sample_options *want);
/* Opens the n events from e on, which have the same targets, disabled, on every online CPU that is
 * wanted. 0; -ESRCH: no such process; -ENODEV: none of the CPUs is online; another -errno. */
int events_open(struct events *e, uint32_t n);
void events_close(struct events *e);
/* 0 or -errno. */
int events_enable(struct events *e, bool enable);
/* Their side bands, before events_enable(). 0 or -errno. */
int events_enable_sidebands(struct events *e);
/* Those that exec does not enable (whole_cpus). 0 or -errno. */
int events_enable_whole_cpus(struct events *e);
/* Call it once a second, or for blocks and wake-ups as often as stacks of them are wanted, while
 * the events are enabled: grants the budget until the next call. Those that rest go on. */
void events_refill(struct events *e);
/* Events of tasks, which have no budget, stand still on that CPU until events_refill(). */
void events_rest(struct events *e, int cpu);

/* Sets the same probe in another file, on all CPUs, as long as the events are open. It has a budget
 * of its own. copy is borrowed until it is removed. enable: it counts at once. 0; -errno, logged.
 * */
int events_add_copy(struct events *e, const struct sample_uprobe *copy, bool enable);
void events_remove_copy(struct events *e, const struct sample_uprobe *copy);

/* The threads of the targets and of their descendants that are alive now, at most max: how many. */
size_t events_list_tasks(const struct events *e, pid_t *tasks, size_t max);

/*
 * Opens the event on a CPU that came online. Events of tasks are opened for the targets and their
 * descendants that live now. enable: they count at once. Returns the new row, borrowed until the
 * next CPU is added or removed. NULL: the CPU has the event already, is not wanted, or refuses the
 * event (logged, once a minute).
 */
struct cpu_events *events_add_cpu(struct events *e, int cpu, bool enable);
/*
 * Changes the size of stack copies: opens new sample events that write into the existing rings. A
 * CPU that refuses them keeps its old event (logged). 0; -ENOTSUP: the events are of tasks or of
 * several cgroups, and cannot be replaced one by one.
 */
int events_resize_stacks(struct events *e, uint32_t stack_bytes, bool enable);
/* Does the same to change whether each sample wakes the processes that poll the event. */
int events_wake_each(struct events *e, bool wake, bool enable);
/* Closes the event on a CPU. The last row takes the place of its row. Without such a CPU it does
 * nothing. */
void events_remove_cpu(struct events *e, int cpu);
/* Call it at each look at enabled events. Was the CPU offline since the last look? */
bool events_died(struct cpu_events *c);
/* The same for samples of whole CPUs beside a side band of tasks, which lives on: the CPU gets a
 * new event for the same ring. true: it has one now. */
bool events_revive_cpu(struct events *e, struct cpu_events *c);
