/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Processes that were killed and wait for memory which does not answer: they end with that, and
 * others have their places meanwhile.
 */
#include <stdbool.h>
#include <sys/types.h>

#define UNDEAD_MAX 64

struct undead {
	pid_t pids[UNDEAD_MAX]; /* 0: none */
};

/* false: there are too many. */
bool undead_add(struct undead *u, pid_t pid);
/* Forgets those that have ended. */
void undead_reap(struct undead *u);
