/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order in which pprof files have their types. Of allocations it is the order of Go's heap
 * profiles, which users of go tool pprof know and whose first value its option -mean divides by:
 * blocks before their bytes, allocated before in use, and what is in use is shown first. Of others
 * the one asked for is.
 */
#include "src/profile/profile.h"

struct pprof_types {
	uint32_t order[PROFILE_MAX_TYPES]; /* rows of the profile's types */
	uint32_t shown;			   /* the row that tools show if not told otherwise */
	bool of_heap;			   /* the first row is of allocations, so is the file */
};

/* asked: the event that the capture was made for; NULL: the first type. */
void pprof_types_of(const struct profile *p, const char *asked, struct pprof_types *ret);
