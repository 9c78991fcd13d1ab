/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switches ROUNDS WORK_NS [KIB]: two processes on one CPU wake each other by pipes, so each round
 * is two context switches, and work for so long in between, with so much on their stacks. Prints
 * the nanoseconds of CPU time of both a switch, and the switches a second.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

#define KIB 1024

static uint64_t now_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* So many turns of a loop, which takes no clock: the same work with and without a profiler. */
static void work(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

static uint64_t turns_of(uint64_t ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 20 && ns; i++) {
		uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID), took;

		work(100000);
		took = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		best = took < best ? took : best;
	}
	return ns * 100000 / best;
}

KNOWN void switches_pass(int from, int to, long rounds, uint64_t turns)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++) {
		work(turns);
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			exit(1);
	}
}

KNOWN void switches_deep(int kib, int from, int to, long rounds, uint64_t turns)
{
	volatile char frame[KIB];

	frame[0] = frame[KIB - 1] = 1;
	if (kib > 0)
		switches_deep(kib - 1, from, to, rounds, turns);
	else
		switches_pass(from, to, rounds, turns);
	frame[0] = frame[KIB - 1];
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	uint64_t turns = turns_of(argc > 2 ? (uint64_t)atoll(argv[2]) : 0), wall, cpu;
	int kib = argc > 3 ? atoi(argv[3]) : 0;
	struct rusage child;
	int there[2], back[2];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (fork() == 0) {
		char byte;

		if (read(there[0], &byte, 1) != 1)
			_exit(1);
		switches_deep(kib, there[0], back[1], rounds - 1, turns);
		if (write(back[1], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	switches_deep(kib, back[0], there[1], rounds, turns);
	(void)wait4(-1, NULL, 0, &child);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	cpu += (uint64_t)(child.ru_utime.tv_sec + child.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(child.ru_utime.tv_usec + child.ru_stime.tv_usec) * 1000;
	printf("%.1f %.0f\n", (double)cpu / (2.0 * (double)rounds),
	       2e9 * (double)rounds / (double)wall);
	return 0;
}
