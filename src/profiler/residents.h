/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of the sampled processes is in memory, in captures of where memory grows, and for the
 * local store. The largest RESIDENTS_MAX are looked at: in captures each second, by the daemon each
 * ten seconds, and at the end of each window. What has changed becomes a profile_resident of the
 * window, and each of them has one at least. The numbers are the kernel's, from statm. With them
 * come the kills for want of memory.
 */
#include <stdbool.h>
#include <stdint.h>

#define RESIDENTS_MAX 128

struct attribution;
struct host_process;
struct residents;

/* If an event counts bytes of pages, and somebody shows these; else *ret is NULL. 0 or -ENOMEM. */
int residents_new(struct residents **ret, struct attribution *a);
struct residents *residents_free(struct residents *r);
/* At a sample of p, at a->time_ns: it is one of them if it is large enough. */
void residents_see(struct residents *r, struct host_process *p);
/* Looks at all of them if it is time to, or (closes) at the end of a window. */
void residents_read(struct residents *r, uint64_t now_unix_ns, bool closes);
