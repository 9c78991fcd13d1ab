/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The events of off-CPU time: blocks, with stacks, wake-ups for locks, and behind all others
 * switches. */
#include <stdbool.h>
#include <stddef.h>

#include "src/broker/broker.h"

#define OFF_CPU_N_EVENTS 2 /* without wake-ups */

/* of_tasks: not of whole CPUs. plain: also where there are no tracepoints. Without ring sizes: the
 * config's hold. 0; -ENOENT with what is missing, and what to do, in error. */
int off_cpu_events(struct broker_event ret[OFF_CPU_N_EVENTS], bool of_tasks, bool plain,
		   char *error, size_t n_error);
/* The same of wake-ups, which stand before the last of the others. */
int off_cpu_wakeups(struct broker_event *ret, bool of_tasks, char *error, size_t n_error);
