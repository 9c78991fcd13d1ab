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
	uint64_t file_timeout_ns; /* how long a child may be at one file */
};

/* A child's process has ended so, and its page still says what it was doing. */
void blame_death(struct blame *b, struct child *c, int wait_status);
/* Kills a running child that has been at its present work for too long. */
void blame_watch(const struct blame *b, struct child *c, uint64_t now);
