/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the filter of each role adds to a system call: two processes, one with the filter, read
 * nothing in turns, in short rounds. Prints a line for each role: its name, and the median of the
 * differences of neighbouring rounds, in nanoseconds of CPU time.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/sandbox.h"
#include "util/clock.h"

#define N_ROUNDS 400
#define N_CALLS	 2000

/* A round at each byte from the socket, whose time is the answer. */
static void work(int sock, bool filtered, enum peer who)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char byte;

	if (filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			 sandbox_filter_calls(who, SANDBOX_ERRNO) < 0))
		_exit(1);
	while (read(sock, &byte, 1) == 1) {
		uint64_t ns = clock_get_ns(CLOCK_THREAD_CPUTIME_ID);

		for (int i = 0; i < N_CALLS; i++)
			(void)!read(fd, &byte, 1);
		ns = clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - ns;
		(void)!write(sock, &ns, sizeof(ns));
	}
	_exit(0);
}

static int start(bool filtered, enum peer who)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		exit(1);
	if (fork() == 0) {
		(void)close(pair[0]);
		work(pair[1], filtered, who);
	}
	(void)close(pair[1]);
	return pair[0];
}

static double round_of(int sock)
{
	uint64_t ns;

	if (write(sock, "", 1) != 1 || read(sock, &ns, sizeof(ns)) != sizeof(ns))
		exit(1);
	return (double)ns / N_CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static const enum peer roles[] = {PEER_PROFILER, PEER_SYMBOLIZER, PEER_EXPORTER,
					  PEER_READER, SANDBOX_OPENER};

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		int without = start(false, roles[i]), with = start(true, roles[i]);
		double found[N_ROUNDS];

		for (int k = 0; k < N_ROUNDS; k++) {
			double before = round_of(without);

			found[k] = round_of(with) - before;
		}
		qsort(found, N_ROUNDS, sizeof(*found), compare);
		printf("%s %.1f\n", sandbox_name(roles[i]), found[N_ROUNDS / 2]);
		(void)close(without);
		(void)close(with);
	}
	return 0;
}
