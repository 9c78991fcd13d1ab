/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much memory each process had: the residents of a profile, by process and time. */
#include <stdint.h>

#include "src/profile/profile.h"

/* A process is a pid with a start time, also if its name changed. */
struct resident_sum {
	uint32_t process;	   /* its last row of the profile */
	uint32_t first, n;	   /* of the points, in the order of time */
	uint64_t begin, end, most; /* bytes: the first and the last known number, and the largest */
	bool ended;
};

struct resident_sums {
	struct resident_sum *items; /* the one with the most bytes first */
	uint32_t n;
	struct profile_resident *points;
};

/* Microseconds since the profile's start; earlier times are 0, later times than its end are the
 * end. */
uint64_t residents_us(const struct profile *p, uint64_t time_unix_ns);
/* 0 or -ENOMEM; free *ret in any case. */
int residents_by_process(const struct profile *p, struct resident_sums *ret);
void residents_free_sums(struct resident_sums *s);
