/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that publish their spans (OTEP 4947) and sleep in them: long (in_long) in the first half
 * of a thread's spans, each one longer than the one before, short (in_short) in the others, and in
 * no span (in_idle). All sleeps of a kind are in one place of the code, so that nothing but the
 * span tells them apart. An argument makes long ones so many times longer. Once its input ends it
 * prints each sleep: the number of the thread, the function, the span or "-", when it began and
 * ended, in nanoseconds of Unix time.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/context-publisher.h"
#include "common.h"

enum { N_THREADS = 4, N_SPANS = 16, NO_SPAN = N_SPANS, MAX_SLEEPS = 1 << 16 };

struct __attribute__((packed, aligned(2))) span {
	uint8_t trace[16], id[8], valid, flags;
	uint16_t n;
};

void **span_slot(void);

struct sleeper {
	pid_t tid;
	uint32_t n;
	struct span spans[N_SPANS];
	struct slept {
		int span; /* of its thread; NO_SPAN: none */
		uint64_t begin_ns, end_ns;
	} sleeps[MAX_SLEEPS];
} sleepers[N_THREADS];

static volatile int done;
static long factor = 1;

static uint64_t unix_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The stack pointer tells their kinds apart. */
#define NAP(name, bytes)                                                                           \
	KNOWN void in_##name(long ns)                                                              \
	{                                                                                          \
		struct timespec t = {.tv_nsec = ns};                                               \
		volatile char room[bytes];                                                         \
                                                                                                   \
		room[0] = 0;                                                                       \
		(void)nanosleep(&t, NULL);                                                         \
		KEEP_FRAME();                                                                      \
	}
NAP(long, 64)
NAP(short, 256)
NAP(idle, 1024)

static void nap(struct sleeper *s, int span, long ns)
{
	void (*const in)(long) = span == NO_SPAN      ? in_idle
				 : span < N_SPANS / 2 ? in_long
						      : in_short;
	struct slept *mine = &s->sleeps[s->n < MAX_SLEEPS - 1 ? s->n++ : s->n];

	*(void *volatile *)span_slot() = span == NO_SPAN ? NULL : &s->spans[span];
	mine->span = span;
	mine->begin_ns = unix_ns();
	in(ns);
	mine->end_ns = unix_ns();
}

static void *work(void *arg)
{
	struct sleeper *s = arg;

	s->tid = gettid();
	for (int i = 0; i < N_SPANS; i++) {
		s->spans[i].trace[0] = (uint8_t)(s - sleepers + 1);
		s->spans[i].id[0] = (uint8_t)(s - sleepers + 1);
		s->spans[i].id[7] = (uint8_t)(i + 1);
		s->spans[i].valid = 1;
	}
	for (uint32_t round = 0; !done; round++) {
		/* Its samples tell that it has spans at all. */
		SPIN(SPIN_SHORT * 100);
		nap(s, (int)(round % (N_SPANS / 2)),
		    factor * (25000000 + 8000000 * (long)(round % 8)));
		nap(s, NO_SPAN, 20000000);
		for (int i = 0; i < 20; i++)
			nap(s, N_SPANS / 2 + i % (N_SPANS / 2), 300000);
	}
	return NULL;
}

static void publish(void)
{
	static const char payload[] = "\x12\x2e"
				      "\x0a\x1athreadlocal.schema_version"
				      "\x12\x10\x0a\x0etlsdesc_v1_dev";
	struct published_header *h = published_map(1);
	char *copy = malloc(sizeof(payload)); /* where SDKs have it: not in the program's file */

	if (!h || !copy)
		exit(77);
	memcpy(copy, payload, sizeof(payload));
	published_set(h, copy, sizeof(payload) - 1, 1);
}

static void tell(const struct sleeper *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct slept *e = &s->sleeps[i];

		if (e->span == NO_SPAN)
			(void)printf("%d in_idle -", s->tid);
		else
			(void)printf("%d %s %02x000000000000%02x", s->tid,
				     e->span < N_SPANS / 2 ? "in_long" : "in_short",
				     s->spans[e->span].id[0], s->spans[e->span].id[7]);
		(void)printf(" %llu %llu\n", (unsigned long long)e->begin_ns,
			     (unsigned long long)e->end_ns);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	char byte;

	factor = argc > 1 ? atol(argv[1]) : 1;
	publish();
	for (int i = 0; i < N_THREADS; i++)
		(void)pthread_create(&threads[i], NULL, work, &sleepers[i]);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	done = 1;
	for (int i = 0; i < N_THREADS; i++) {
		(void)pthread_join(threads[i], NULL);
		tell(&sleepers[i]);
	}
	return 0;
}
