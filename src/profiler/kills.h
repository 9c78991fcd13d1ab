/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Processes that the kernel kills for want of memory, of the host or of a control group: how many,
 * by the counter oom_kill of /proc/vmstat (Linux 4.13). It does not say which: victims.h does.
 */
#include <stdbool.h>
#include <stdint.h>

struct outside;
struct profile;

/* Starts as {.fd = -EBADF}. */
struct kill_counter {
	int fd;
	bool tried;
	uint64_t n; /* when it was looked at last */
};

/* What has been added since the last look, its number; the first one only remembers the counter. */
uint64_t kills_read(struct kill_counter *c, struct outside *o, struct profile *p,
		    uint64_t now_unix_ns);
void kills_close(struct kill_counter *c);
