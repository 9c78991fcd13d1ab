/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that goes into another span each microsecond or so (OTEP 4947), beside what makes a
 * reader see it late:
 *
 *	spans-fast [map] [move] [realtime]
 *
 * map: two threads change their mappings, so that readers wait for the lock of its memory. move: a
 * thread moves it to another CPU all the time; twice: two do. realtime: it has a higher priority
 * than readers, and sleeps in a span each time. In in_0 to in_7 its span's first byte is that
 * number and one more; in in_same_0 to in_same_7, too, where all spans are written into one record.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../unit/context-publisher.h"
#include "common.h"

enum { N_SPANS = 8, N_RECORDS = 64, SPIN_FAST = 300, MAPPED_BYTES = 4 << 20 };

struct __attribute__((packed, aligned(2))) span {
	uint8_t trace[16], id[8], valid, flags;
	uint16_t n;
	uint8_t bytes[40];
};

static const struct timespec moment = {.tv_nsec = 50000};

void **span_slot(void);

#define WORK(name)                                                                                 \
	KNOWN static void in_##name(void)                                                          \
	{                                                                                          \
		SPIN(SPIN_FAST);                                                                   \
		KEEP_FRAME();                                                                      \
	}
#define EACH(prefix)                                                                               \
	WORK(prefix##0)                                                                            \
	WORK(prefix##1)                                                                            \
	WORK(prefix##2)                                                                            \
	WORK(prefix##3) WORK(prefix##4) WORK(prefix##5) WORK(prefix##6) WORK(prefix##7)
EACH()
EACH(same_)

static void (*const in_own[N_SPANS])(void) = {in_0, in_1, in_2, in_3, in_4, in_5, in_6, in_7};
static void (*const in_same[N_SPANS])(void) = {in_same_0, in_same_1, in_same_2, in_same_3,
					       in_same_4, in_same_5, in_same_6, in_same_7};

/* As a handler of signals would see it. */
static void set(struct span *s)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(void *volatile *)span_slot() = s;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void fill(struct span *s, uint8_t number)
{
	s->valid = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memset(s->trace, 0x10 + number, sizeof(s->trace));
	memset(s->id, number, sizeof(s->id));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	s->valid = 1;
}

static void work(bool sleeps)
{
	static struct span own[N_SPANS][N_RECORDS], same;

	for (int i = 0; i < N_SPANS * N_RECORDS; i++)
		fill(&own[i / N_RECORDS][i % N_RECORDS], (uint8_t)(i / N_RECORDS + 1));
	for (uint32_t round = 0;; round++) {
		for (int i = 0; i < N_SPANS; i++) {
			set(&own[i][round % N_RECORDS]);
			in_own[i]();
			if (i == 0 && sleeps)
				(void)nanosleep(&moment, NULL);
			set(NULL);
		}
		set(&same);
		for (int i = 0; i < N_SPANS; i++) {
			fill(&same, (uint8_t)(i + 1));
			in_same[i]();
		}
		set(NULL);
		rest(50);
	}
}

/* The lock is held until the access to all pages has changed. */
static void *map(void *arg)
{
	char *p = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	while (p != MAP_FAILED) {
		(void)mprotect(p, MAPPED_BYTES, PROT_READ);
		(void)mprotect(p, MAPPED_BYTES, PROT_READ | PROT_WRITE);
		rest(50);
	}
	return arg;
}

static void *move(void *arg)
{
	cpu_set_t all, one;

	(void)prctl(PR_SET_TIMERSLACK, 1);
	(void)sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0;; cpu = (cpu + 1) % CPU_SETSIZE) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(getpid(), sizeof(one), &one);
		(void)nanosleep(&moment, NULL);
	}
	return arg;
}

static void publish(void)
{
	/* An attribute of a ProcessContext: the schema. */
	static const char payload[] = "\x12\x2e"
				      "\x0a\x1athreadlocal.schema_version"
				      "\x12\x10\x0a\x0etlsdesc_v1_dev";
	struct published_header *h = published_map(1);
	/* Not in the program's file: who reads it asks no filesystem that could wait. */
	char *copy = malloc(sizeof(payload));

	if (!h || !copy)
		exit(77);
	memcpy(copy, payload, sizeof(payload));
	published_set(h, copy, sizeof(payload) - 1, 1);
}

int main(int argc, char **argv)
{
	const struct sched_param first = {.sched_priority = 2};
	bool sleeps = false;
	pthread_t thread;

	publish();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "map") == 0) {
			(void)pthread_create(&thread, NULL, map, NULL);
			(void)pthread_create(&thread, NULL, map, NULL);
		} else if (strcmp(argv[i], "move") == 0) {
			(void)pthread_create(&thread, NULL, move, NULL);
		} else if (strcmp(argv[i], "realtime") == 0) {
			sleeps = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
			if (!sleeps)
				return 77;
		}
	}
	(void)puts("ready");
	(void)fflush(stdout);
	work(sleeps);
	return 0;
}
