/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that fight for three mutexes, for as many rounds as the argument says. By the kernel's
 * own count of each thread's voluntary switches it is known how often each waited, and by its
 * clocks how long: wall time less CPU time. Waits in which a thread was preempted, too, are told
 * apart. Prints KIND WAITS SURE UNSURE LONGEST ADDRESS, in nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
#define KEEP  __asm__ volatile("" ::: "memory") /* no tail call */

struct fight {
	const char *name;
	pthread_mutex_t *mutex;
	void (*take)(struct fight *f);
	void (*give)(struct fight *f);
	long hold_ns, pause_ns;
	pthread_mutex_t sums; /* of the numbers; taken once by each thread, at its end */
	uint64_t waits, sure_ns, unsure_ns, longest_ns;
};

static int rounds;
static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t other[8];
	pthread_mutex_t mutex;
} journal = {.other = {1}, .mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ns(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	(void)nanosleep(&t, NULL);
}

APART static void take_pool(struct fight *f)
{
	pthread_mutex_lock(f->mutex);
	KEEP;
}

APART static void give_pool(struct fight *f)
{
	pthread_mutex_unlock(f->mutex);
	KEEP;
}

APART static void take_journal(struct fight *f)
{
	pthread_mutex_lock(f->mutex);
	KEEP;
}

APART static void give_journal(struct fight *f)
{
	pthread_mutex_unlock(f->mutex);
	KEEP;
}

APART static void take_heap(struct fight *f)
{
	pthread_mutex_lock(f->mutex);
	KEEP;
}

APART static void give_heap(struct fight *f)
{
	pthread_mutex_unlock(f->mutex);
	KEEP;
}

static void *run(void *arg)
{
	struct fight *f = arg;
	uint64_t waits = 0, sure = 0, unsure = 0, longest = 0;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	for (int i = 0; i < rounds; i++) {
		struct rusage before, after;
		uint64_t wall, cpu, ns;
		long n;

		(void)getrusage(RUSAGE_THREAD, &before);
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		wall = clock_ns(CLOCK_MONOTONIC);
		f->take(f);
		wall = clock_ns(CLOCK_MONOTONIC) - wall;
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		(void)getrusage(RUSAGE_THREAD, &after);
		pause_ns(f->hold_ns);
		f->give(f);
		n = after.ru_nvcsw - before.ru_nvcsw;
		ns = wall > cpu ? wall - cpu : 0;
		if (n > 0) {
			bool is_sure = after.ru_nivcsw == before.ru_nivcsw;

			waits += (uint64_t)n;
			*(is_sure ? &sure : &unsure) += ns;
			if (n == 1 && is_sure && ns > longest)
				longest = ns;
		}
		pause_ns(f->pause_ns + rand_r(&seed) % 500000);
	}
	(void)pthread_mutex_lock(&f->sums);
	f->waits += waits;
	f->sure_ns += sure;
	f->unsure_ns += unsure;
	f->longest_ns = longest > f->longest_ns ? longest : f->longest_ns;
	(void)pthread_mutex_unlock(&f->sums);
	return NULL;
}

int main(int argc, char **argv)
{
	struct fight fights[] = {
		{"pool", &pool_mutex, take_pool, give_pool, 1000000, 500000},
		{"journal", &journal.mutex, take_journal, give_journal, 3000000, 1000000},
		{"heap", calloc(1, sizeof(pthread_mutex_t)), take_heap, give_heap, 500000, 200000},
	};
	enum { N = sizeof(fights) / sizeof(fights[0]), EACH = 3 };
	pthread_t threads[N][EACH];

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	for (int i = 0; i < N; i++)
		for (int k = 0; k < EACH; k++)
			(void)pthread_create(&threads[i][k], NULL, run, &fights[i]);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < EACH; k++)
			(void)pthread_join(threads[i][k], NULL);
		printf("%s %llu %llu %llu %llu %p\n", fights[i].name,
		       (unsigned long long)fights[i].waits, (unsigned long long)fights[i].sure_ns,
		       (unsigned long long)fights[i].unsure_ns,
		       (unsigned long long)fights[i].longest_ns, (void *)fights[i].mutex);
	}
	return 0;
}
