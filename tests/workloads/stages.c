/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A life in stages: a child that is forked and never calls exec, next to a child that burns some
 * CPU and then replaces itself by another program image. Mappings are inherited by the one and
 * replaced in the other; both then burn in functions of different names.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"

#define BEFORE_NS 100000000

KNOWN void stages_forked(void)
{
	for (;;)
		SPIN(SPIN_SHORT);
}

KNOWN void stages_before(void)
{
	while (thread_cpu_ns() < BEFORE_NS)
		SPIN(SPIN_SHORT);
}

KNOWN void stages_fork(void)
{
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stages_forked();
	}
	KEEP_FRAME();
}

/* argv[1]: the program to become. */
int main(int argc, char **argv)
{
	stages_fork();
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stages_before();
		execv(argv[1], argv + 1);
		_exit(127);
	}
	for (;;)
		wait(NULL);
}
