/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of the sampled processes is in memory, in captures of where memory grows: the largest
 * RESIDENTS_MAX are looked at each second, and what has changed becomes a profile_resident of the
 * window. The numbers are the kernel's, from statm. With them come the kills for want of memory.
 */
#include <stdbool.h>
#include <stdint.h>

#define RESIDENTS_MAX 128

struct attribution;
struct host_process;
struct residents;

/* For captures whose events count bytes of pages; else *ret is NULL. 0 or -ENOMEM. */
int residents_new(struct residents **ret, struct attribution *a);
struct residents *residents_free(struct residents *r);
/* At a sample of p, at a->time_ns: it is one of them if it is large enough. */
void residents_see(struct residents *r, struct host_process *p);
/* Looks at all of them if a second has passed, or (closes) at the end of a window. */
void residents_read(struct residents *r, uint64_t now_unix_ns, bool closes);
