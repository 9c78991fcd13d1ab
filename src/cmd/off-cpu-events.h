/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The events of off-CPU time: blocks, with stacks; wake-ups, for locks; and, as the last of all,
 * switches. */
#include <stdbool.h>
#include <stddef.h>

#include "src/broker/broker.h"

#define OFF_CPU_N_EVENTS 2 /* without wake-ups */

/* Makes blocks and switches, of tracepoints if possible. of_tasks: of tasks, not of whole CPUs. The
 * sizes of their rings are the config's. 0; -ENOENT: error says what is missing, and what to do. */
int off_cpu_events(struct broker_event ret[OFF_CPU_N_EVENTS], bool of_tasks, char *error,
		   size_t n_error);
/* Makes wake-ups, which come between the two. The same outcomes. */
int off_cpu_wakeups(struct broker_event *ret, bool of_tasks, char *error, size_t n_error);
