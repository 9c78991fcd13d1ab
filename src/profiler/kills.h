/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many processes the kernel kills for want of memory, of the host or of a control group, by the
 * counter oom_kill of /proc/vmstat (Linux 4.13). victims.h finds out which.
 */
#include <stdbool.h>
#include <stdint.h>

struct outside;
struct profile;

/* Starts as {.fd = -EBADF}. */
struct kill_counter {
	int fd;
	bool tried;
	uint64_t n; /* the counter at the last look */
};

/* Adds the kills since the last look to the profile. Returns how many; 0 at the first look, which
 * only reads the counter. */
uint64_t kills_read(struct kill_counter *c, struct outside *o, struct profile *p,
		    uint64_t now_unix_ns);
void kills_close(struct kill_counter *c);
