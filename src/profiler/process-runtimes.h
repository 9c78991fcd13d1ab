/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which runtime and which interpreter a process has: it is found among the mapped files, reported
 * to the code that reads its frames (runtimes.h, readers.h), and forgotten when the process
 * executes another program.
 */

#include <stdbool.h>

struct attribution;
struct record;

/* Lets the walk ask runtimes for their frames. 0 or -ENOMEM. */
int attribution_new_runtimes(struct attribution *a);
/* Lets us read the frames of interpreters in blocked threads. 0 or -ENOMEM. */
int attribution_new_blocked_chains(struct attribution *a);

/* Reports a->process to the readers if it has an interpreter that they read. Looks again only when
 * the process has new mappings, or a file was found that exports a runtime. */
void attribution_look_for_interpreter(struct attribution *a);
/* Is a native frame of the stack that the walk has left in one of a->process's interpreters that is
 * not read, since others are? */
bool attribution_passes_second(const struct attribution *a);
/* A fork: a child of an interpreter runs it, too, unless it executes another program; a new thread
 * may have functions of its own. */
void attribution_see_fork(struct attribution *a, const struct record *r);
/* The exit of a thread, after host_on_exit(). */
void attribution_see_exit(struct attribution *a, const struct record *r);
/* The same at a record of a mapping, if its file may be an interpreter: then the readers know the
 * process before its first sample. Of another runtime's, the next drains come soon. */
void attribution_see_mapping(struct attribution *a, const struct record *r);
/* Call it before the look for an interpreter if a->process may have no sample yet: looks at what
 * its program exports. Files of other names are looked at when they are walked through. */
void attribution_look_into_program(struct attribution *a);
