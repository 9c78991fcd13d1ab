/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cmd/off-cpu-events.h"

#include <stdio.h>

/*
 * On whole CPUs: the first blocks of each quarter of a second. With a rate, the kernel would adapt
 * the period to bursts, and take only a few samples a second where threads block now and then.
 */
#define BLOCKS_GRANT 50
#define BLOCKS_STACK (24u << 10)
/* If the places of switches are unknown, a stack belongs to one block only: rather more stacks than
 * deep ones. Half of these are switches of the idle task. */
#define PLAIN_GRANT 1000
#define PLAIN_STACK (8u << 10)

/*
 * On tasks: each block. With a rate, the kernel adapts the period only while a task runs, and new
 * threads inherit it. A thread that began in a burst and then mostly sleeps would never be sampled.
 */
int off_cpu_events(struct broker_event ret[OFF_CPU_N_EVENTS], bool of_tasks, char *error,
		   size_t n_error)
{
	struct broker_event blocks = {.use = SAMPLE_USE_BLOCKS,
				      .period = 1,
				      .budget = of_tasks ? 0 : BLOCKS_GRANT,
				      .stack_bytes = BLOCKS_STACK};
	struct broker_event switches = {.use = SAMPLE_USE_SWITCHES, .period = 1, .stack_bytes = 8};
	int r = sample_find_switches(&blocks.event, &blocks.switch_fields, error, n_error);

	if (r < 0 || (of_tasks && sample_event_try(&blocks.event) < 0))
		r = sample_find_plain_switches(&blocks.event, &blocks.switch_fields, error,
					       n_error);
	if (r < 0)
		return r;
	if (blocks.switch_fields.plain) {
		blocks.budget = of_tasks ? 0 : PLAIN_GRANT;
		blocks.stack_bytes = PLAIN_STACK;
	}
	switches.event = blocks.event;
	switches.switch_fields = blocks.switch_fields;
	(void)snprintf(blocks.event.name, sizeof(blocks.event.name), "off_cpu");
	(void)snprintf(switches.event.name, sizeof(switches.event.name), "switches");
	ret[0] = blocks;
	ret[1] = switches;
	return 0;
}

int off_cpu_wakeups(struct broker_event *ret, bool of_tasks, char *error, size_t n_error)
{
	struct broker_event wakeups = {.use = SAMPLE_USE_WAKEUPS,
				       .period = 1,
				       .budget = of_tasks ? 0 : BLOCKS_GRANT,
				       .stack_bytes = BLOCKS_STACK};
	int r = sample_find_wakeups(&wakeups.event, &wakeups.switch_fields, error, n_error);

	if (r < 0)
		return r;
	(void)snprintf(wakeups.event.name, sizeof(wakeups.event.name), "lock_wakeups");
	*ret = wakeups;
	return 0;
}
