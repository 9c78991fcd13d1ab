/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Killed processes that cannot end because they wait for memory of a file system that does not
 * answer. Other processes take their places meanwhile.
 */
#include <stdbool.h>
#include <sys/types.h>

#define UNDEAD_MAX 64

struct undead {
	pid_t pids[UNDEAD_MAX]; /* 0: none */
};

/* Starts to wait for a process. false: there are UNDEAD_MAX already. */
bool undead_add(struct undead *u, pid_t pid);
/* Reaps and forgets those that have ended. */
void undead_reap(struct undead *u);
