/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that wait for work: the pools of servers, timers that seldom run out. They are blocked
 * nearly all of the time, and hide the waits that matter.
 */
#include <stdbool.h>

#include "src/profile/profile.h"

/*
 * Finds idle threads in a whole window, or a capture, whose stacks have names and reasons. A thread
 * is idle if one place holds it for more than 90% of the time, it leaves the place less than once a
 * second, and it waits there for a condition, a descriptor, a connection, a signal or a time. A
 * window of less than a second has no idle threads.
 *
 * show: puts these stacks below [idle]. Else removes their samples of off-CPU time, and counts them
 * in PROFILE_IDLE_US; those of wall time become [idle] alone, so that each thread keeps its time.
 */
void idle_fold(struct profile *p, bool show);
