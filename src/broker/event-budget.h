/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The budget of an event: so many samples a second of each CPU, given anew each second, after which
 * the kernel stops the event. What it does not see meanwhile is counted (events.stood_still_ns).
 */
#include "src/broker/events.h"

/* Gives one of its kernel events its part of the budget. 0; 1: the last one was used up; -errno. */
int event_budget_grant(const struct events *e, struct sample_cpu *c);
/* Gives all of them their part, and enables those that had stopped. 0 or -errno. */
int event_budget_refill(struct events *e);
/* The same for those of one CPU. */
int event_budget_refill_cpu(struct events *e, struct cpu_events *c);
