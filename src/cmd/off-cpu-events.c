/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cmd/off-cpu-events.h"

#include <stdio.h>

#define BLOCKS_HZ    199
#define BLOCKS_STACK (16u << 10)
/*
 * Of tasks, each block: the kernel adapts the distance of samples to a rate only while a task runs,
 * and gives it on to new threads. One that began in a burst and then sleeps for the most part would
 * never be sampled.
 */
#define TASK_BLOCKS_STACK (8u << 10)

int off_cpu_events(struct broker_event ret[OFF_CPU_N_EVENTS], bool of_tasks, char *error,
		   size_t n_error)
{
	struct broker_event blocks = {.use = SAMPLE_USE_BLOCKS,
				      .period = of_tasks,
				      .rate_hz = of_tasks ? 0 : BLOCKS_HZ,
				      .stack_bytes = of_tasks ? TASK_BLOCKS_STACK : BLOCKS_STACK};
	struct broker_event switches = {.use = SAMPLE_USE_SWITCHES, .period = 1, .stack_bytes = 8};
	int r = sample_find_switches(&blocks.event, &blocks.switch_fields, error, n_error);

	if (r < 0)
		return r;
	switches.event = blocks.event;
	switches.switch_fields = blocks.switch_fields;
	(void)snprintf(blocks.event.name, sizeof(blocks.event.name), "off_cpu");
	(void)snprintf(switches.event.name, sizeof(switches.event.name), "switches");
	ret[0] = blocks;
	ret[1] = switches;
	return 0;
}
