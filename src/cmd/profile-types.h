/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which types of profiles perfwalk record can make on this host, by trying. */
#include <stddef.h>

enum profile_reach {
	REACH_HOST,	  /* of the whole host, and so of anything */
	REACH_HOST_ALONE, /* of the whole host, but of no process and command by itself */
	REACH_OWN,	  /* of own processes and commands (-p, -t, COMMAND) */
	REACH_NONE,
};

struct profile_reached {
	const char *name, *options; /* "off-CPU time", "--off-cpu, --wall" */
	enum profile_reach reach;
	char why[1024];	  /* why not all of that; "": REACH_HOST */
	const char *mend; /* a command that changes that, static; NULL: none is known */
};

#define PROFILE_TYPES_N 5
/* Opens events of each type for a moment. */
void profile_types_find(struct profile_reached ret[PROFILE_TYPES_N]);
/* "the whole host" ... */
const char *profile_reach_text(enum profile_reach reach);
