/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much memory the sampled processes have, in captures of where memory grows, and for the local
 * store. Looks at the largest RESIDENTS_MAX: a capture each second, the daemon every ten seconds,
 * and both at the end of each window. Each change becomes a profile_resident of the window, in
 * which each of these processes has at least one. The numbers are the kernel's, from statm. Kills
 * for want of memory are looked for at the same time.
 */
#include <stdbool.h>
#include <stdint.h>

#define RESIDENTS_MAX 128

struct attribution;
struct host_process;
struct residents;

/* Only if an event counts bytes of pages and an output shows them; else *ret is NULL. a: borrowed.
 * 0 or -ENOMEM. */
int residents_new(struct residents **ret, struct attribution *a);
struct residents *residents_free(struct residents *r);
/* p was sampled at a->time_ns: follows it if it is large enough. */
void residents_see(struct residents *r, struct host_process *p);
/* Looks at all processes if it is time, or (closes) at the end of a window. */
void residents_read(struct residents *r, uint64_t now_unix_ns, bool closes);
