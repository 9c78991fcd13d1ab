/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known numbers of events: "counted faults N" touches N new pages, "counted switches N" sleeps N
 * times and prints how often it gave its CPU away (a sleep may be over before it has begun),
 * "counted both N MS ROUNDS" waits for a line, then touches N new pages and burns MS of CPU time,
 * ROUNDS times, and prints the faults that the kernel counted, the CPU time burnt, and all of it,
 * "counted threads" burns CPU in two threads of different names for ever.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common.h"

#define PAGE 4096L

KNOWN void counted_touch(volatile char *pages, long n)
{
	for (long i = 0; i < n; i++)
		pages[i * PAGE] = 1;
}

static int faults(long n)
{
	char *pages = mmap(NULL, (size_t)(n * PAGE), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return 1;
	(void)madvise(pages, (size_t)(n * PAGE), MADV_NOHUGEPAGE);
	counted_touch(pages, n);
	return 0;
}

KNOWN uint64_t counted_burn(uint64_t ns)
{
	uint64_t begin = thread_cpu_ns(), now;

	do {
		SPIN(SPIN_SHORT);
		now = thread_cpu_ns();
	} while (now - begin < ns);
	return now - begin;
}

static long minor_faults(void)
{
	struct rusage r;

	return getrusage(RUSAGE_SELF, &r) == 0 ? r.ru_minflt : -1;
}

static int both(long n, long ms, long rounds)
{
	uint64_t begin, burnt = 0;
	long touched = 0;

	if (getchar() == EOF)
		return 1;
	begin = thread_cpu_ns();
	for (long i = 0; i < rounds; i++) {
		long before = minor_faults();

		if (faults(n) != 0)
			return 1;
		touched += minor_faults() - before;
		burnt += counted_burn((uint64_t)ms * 1000000);
	}
	printf("faults %ld burnt %llu all %llu\n", touched, (unsigned long long)burnt,
	       (unsigned long long)(thread_cpu_ns() - begin));
	return 0;
}

KNOWN void counted_sleep(long n)
{
	for (long i = 0; i < n; i++)
		usleep(500);
}

KNOWN void counted_one(void)
{
	for (;;) {
		SPIN(SPIN_SHORT);
		KEEP_FRAME();
	}
}

KNOWN void *counted_two(void *unused)
{
	prctl(PR_SET_NAME, "counted-two");
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	for (;;) {
		SPIN(SPIN_SHORT);
		KEEP_FRAME();
	}
	return unused;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 1000;
	pthread_t thread;

	if (argc > 1 && strcmp(argv[1], "faults") == 0)
		return faults(n);
	if (argc > 4 && strcmp(argv[1], "both") == 0)
		return both(n, atol(argv[3]), atol(argv[4]));
	if (argc > 1 && strcmp(argv[1], "switches") == 0) {
		struct rusage before, after;

		if (getrusage(RUSAGE_SELF, &before) != 0)
			return 1;
		counted_sleep(n);
		if (getrusage(RUSAGE_SELF, &after) != 0)
			return 1;
		printf("switches %ld\n", after.ru_nvcsw - before.ru_nvcsw);
		return 0;
	}
	if (pthread_create(&thread, NULL, counted_two, NULL) != 0)
		return 1;
	counted_one();
	return 0;
}
