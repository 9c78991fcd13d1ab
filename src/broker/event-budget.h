/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The budget of an event: the most samples a second on each CPU. It is granted anew each second;
 * when it is used up, the kernel stops the event. events.stood_still_ns counts how long.
 *
 * An event is one kernel event on each CPU, and one more for each further task, cgroup or copy.
 */
#include "src/broker/events.h"

/* Grants one kernel event its part of the budget. 0; 1: it had used up the last one; -errno. */
int event_budget_grant(const struct events *e, struct sample_cpu *c);
/* Grants all kernel events their part, and enables those that had stopped. 0 or -errno. */
int event_budget_refill(struct events *e);
/* The same for those of one CPU. */
int event_budget_refill_cpu(struct events *e, struct cpu_events *c);
