/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes the kernel killed for want of memory, by its log, the only one that says so. The
 * log is read once at the start, to know where it ended, and when there are more kills.
 */
#include <stdbool.h>
#include <stdint.h>

#define VICTIMS_MAX	 64 /* of one look; of more the last ones */
#define VICTIM_LINE_SIZE 160

struct outside;

/* Starts as zeros. */
struct victims {
	bool tried;
	uint64_t n_owed;	     /* counted at the look before, but not in the log yet */
	char last[VICTIM_LINE_SIZE]; /* the beginning of the last line that was read */
};

struct victim {
	uint32_t pid;
	char comm[17];
};

/* Remembers where the log ends. */
void victims_begin(struct victims *v, struct outside *o);
/*
 * Those since the last look; n_kills: so many were killed since then. The number of them in ret; or
 * -errno: nobody may read the log.
 */
int victims_read(struct victims *v, struct outside *o, uint64_t n_kills,
		 struct victim ret[VICTIMS_MAX]);
