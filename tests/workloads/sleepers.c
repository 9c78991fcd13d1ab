/* SPDX-License-Identifier: Apache-2.0 */
/* So many processes that sleep until this one ends: sleepers N. Prints "ready". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)pause();
			_exit(0);
		}
		if (pid < 0) {
			perror("fork");
			return 1;
		}
	}
	(void)puts("ready");
	(void)fflush(stdout);
	(void)pause();
	return 0;
}
