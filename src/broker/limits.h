/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What each kind of process may take: memory, descriptors, files, tasks, and time without a pause
 * (setrlimit). One table (limits.c) has a row for each; core dumps are forbidden to all.
 */
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/privileges.h"

struct config;

/* Rows of the table: the kinds of children, and these. */
enum limits_role {
	LIMITS_OPENER = PEER_N, /* of src/opener/helper.h */
	LIMITS_JUDGE,		/* of src/opener/judge.h */
	LIMITS_BROKER,
	LIMITS_CAPTURE, /* the symbolizer of a capture */
	LIMITS_VIEWER,	/* the symbolizer that reads recorded files */
	LIMITS_LISTER,	/* perfwalk list, once it has opened all */
	LIMITS_N
};

/* What limits depend on: the config, and the host. */
enum limits_measure {
	LIMITS_OF_WINDOW,	 /* bytes of a window */
	LIMITS_OF_UNWIND_ROWS,	 /* bytes */
	LIMITS_OF_SYMBOLIZER,	 /* bytes: [limits] symbolizer_memory */
	LIMITS_OF_QUEUES,	 /* bytes of the queues of all destinations */
	LIMITS_OF_DEBUG_FILE,	 /* bytes of the largest */
	LIMITS_OF_OPEN_FILES,	 /* [limits] max_open_files */
	LIMITS_OF_RINGS,	 /* number of CPUs, for each event */
	LIMITS_OF_READERS_SHARE, /* bytes for one, if all of them share what they may have */
	LIMITS_N_MEASURES
};
struct limits_basis {
	uint64_t of[LIMITS_N_MEASURES];
};

/* n_cpus: one reader each. */
struct limits_basis limits_basis_of(const struct config *c, uint32_t n_rings, uint32_t n_cpus);

/*
 * Sets the limits of a row, and nothing else of ret. basis: NULL is enough for LIMITS_OPENER,
 * _VIEWER and _LISTER, which depend on nothing. A build with sanitizers limits descriptors alone.
 */
void limits_set(struct privileges *ret, enum limits_role who, const struct limits_basis *basis);

/* RLIMIT_RTTIME in microseconds of CPU time, soft and hard; 0: none. */
struct limits_pause {
	uint64_t soft_us, hard_us;
};
struct limits_pause limits_pause_of(enum limits_role who);
/* What all processes of a daemon with n_cpus may have together, with the windows and payloads
 * between them, in bytes; and MemoryMax= of the unit, which is more on most hosts. */
uint64_t limits_memory_of_all(const struct limits_basis *basis, uint32_t n_cpus);
#define LIMITS_UNIT_BYTES (2048ULL << 20)
/* RLIMIT_DATA of a row that depends on nothing, in bytes, in a build with sanitizers as well. */
uint64_t limits_data_of(enum limits_role who);
