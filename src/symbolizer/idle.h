/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that wait for work: the pools of servers, timers that seldom run out. They are blocked
 * nearly all of the time, and hide the waits that make somebody wait.
 */
#include <stdbool.h>

#include "src/profile/profile.h"

/*
 * Of a whole window, or of a capture, whose stacks have names and reasons: a thread is idle in a
 * place that holds it for more than 90% of the time, and that it leaves less than once a second, if
 * it waits there for a condition, a descriptor, a connection, a signal or a time. Windows below a
 * second have no such place.
 *
 * show: these stacks stand below [idle]. Else the samples of off-CPU time are removed, and counted
 * in PROFILE_IDLE_US; those of wall time become [idle] alone, so that each thread keeps its time.
 */
void idle_fold(struct profile *p, bool show);
