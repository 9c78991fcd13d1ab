/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which runtime and which interpreter a process has: it is found among the mapped files, reported
 * to the code that reads its frames (runtimes.h, readers.h), and forgotten when the process
 * executes another program.
 */

struct attribution;
struct record;

/* Lets the walk ask runtimes for their frames. 0 or -ENOMEM. */
int attribution_new_runtimes(struct attribution *a);
/* Lets us read the frames of interpreters in blocked threads. 0 or -ENOMEM. */
int attribution_new_blocked_chains(struct attribution *a);

/* Reports a->process to the readers if it has an interpreter that they read. Looks again only when
 * the process has new mappings. */
void attribution_look_for_interpreter(struct attribution *a);
/* The same at a record of a mapping, if its file may be an interpreter: then the readers know the
 * process before its first sample. */
void attribution_see_mapping(struct attribution *a, const struct record *r);
