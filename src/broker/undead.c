/* SPDX-License-Identifier: Apache-2.0 */
#include "src/broker/undead.h"

#include <stddef.h>
#include <sys/wait.h>

bool undead_add(struct undead *u, pid_t pid)
{
	for (int i = 0; i < UNDEAD_MAX; i++) {
		if (!u->pids[i]) {
			u->pids[i] = pid;
			return true;
		}
	}
	return false;
}

void undead_reap(struct undead *u)
{
	for (int i = 0; i < UNDEAD_MAX; i++) {
		if (u->pids[i] && waitpid(u->pids[i], NULL, WNOHANG) != 0)
			u->pids[i] = 0;
	}
}
