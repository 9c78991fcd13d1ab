/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which file a child's death is blamed on: the one that its status page names. A child that spends
 * too long on one file, or on other work, is killed, and the file goes into quarantine.
 */
#include <stdint.h>

#include "src/broker/quarantine.h"

struct child;

struct blame {
	struct quarantine quarantine;
	uint64_t file_timeout_ns; /* the longest time a child may spend on one file */
};

/* A child's process has ended with this status of waitpid(2). Call it while the child's status page
 * still has what the process wrote. */
void blame_death(struct blame *b, struct child *c, int wait_status);
/* Kills a running child whose present work takes too long. now: CLOCK_MONOTONIC. */
void blame_watch(const struct blame *b, struct child *c, uint64_t now);
