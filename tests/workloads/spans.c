/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that publish their spans (OTEP 4947) and work in them, in functions that tell the span:
 *
 *	spans [LIBRARY]
 *
 * The variable is in the program, or in that library, which is loaded once all threads run. Each
 * thread goes through a span of its own (in_outer) with one inside it (in_inner), through the
 * spans of items that the threads hand over to each other (in_handed_0 to in_handed_7), out of any
 * span (in_none), and through records that are none (in_torn, in_wild). It prints a line for each:
 * the number of the thread, or 0 for all, the function, the id of its span.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/context-publisher.h"
#include "common.h"

enum { N_THREADS = 4, N_BOXES = 4, N_ITEMS = N_THREADS + N_BOXES };

struct __attribute__((packed, aligned(2))) span {
	uint8_t trace[16], id[8], valid, flags;
	uint16_t n;
	uint8_t bytes[40];
};

static void **(*slot)(void);
static pthread_barrier_t running, loaded;
/* Each thread has one of these, and leaves it in a box for another that was left there. */
static struct item {
	struct span span;
	void (*work)(void);
} items[N_ITEMS], *boxes[N_BOXES];

#ifdef SLOT_IN_PROGRAM
void **span_slot(void);
#endif

#define WORK(name)                                                                                 \
	KNOWN void in_##name(void)                                                                 \
	{                                                                                          \
		SPIN(SPIN_SHORT * 4);                                                              \
		KEEP_FRAME();                                                                      \
	}
WORK(outer)
WORK(inner)
WORK(handed_0)
WORK(handed_1)
WORK(handed_2)
WORK(handed_3)
WORK(handed_4)
WORK(handed_5)
WORK(handed_6)
WORK(handed_7)
WORK(none)
WORK(torn)
WORK(wild)

static void fill(struct span *s, uint8_t thread, uint8_t kind)
{
	static const char route[] = "/cart";

	memset(s, 0, sizeof(*s));
	memset(s->trace, 0x10 + thread, sizeof(s->trace));
	memset(s->id, 0x20 + thread, sizeof(s->id));
	s->id[7] = kind;
	s->bytes[0] = 1; /* http_method of the map, before its last value */
	s->bytes[1] = 1;
	s->bytes[2] = 'x';
	s->bytes[3] = 1;
	s->bytes[4] = 3;
	memcpy(s->bytes + 5, "GET", 3);
	s->bytes[8] = 0;
	s->bytes[9] = sizeof(route) - 1;
	memcpy(s->bytes + 10, route, sizeof(route) - 1);
	s->n = 10 + sizeof(route) - 1;
	s->valid = 1;
}

static void fill_items(void)
{
	static void (*const works[N_ITEMS])(void) = {in_handed_0, in_handed_1, in_handed_2,
						     in_handed_3, in_handed_4, in_handed_5,
						     in_handed_6, in_handed_7};

	for (int i = 0; i < N_ITEMS; i++) {
		fill(&items[i].span, (uint8_t)(0x40 + i), 5);
		items[i].work = works[i];
	}
	for (int i = 0; i < N_BOXES; i++)
		boxes[i] = &items[N_THREADS + i];
}

static void tell(pid_t tid, const char *function, const struct span *s)
{
	char text[17];

	for (int i = 0; i < 8; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", s->id[i]);
	(void)printf("%d %s %s\n", tid, function, text);
	(void)fflush(stdout);
}

/* As a handler of signals would see it. */
static void set(struct span *s)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(void *volatile *)slot() = s;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static struct item *hand_over(struct item *mine)
{
	static uint32_t n_handed;
	uint32_t n = __atomic_fetch_add(&n_handed, 1, __ATOMIC_RELAXED);

	return __atomic_exchange_n(&boxes[n % N_BOXES], mine, __ATOMIC_ACQ_REL);
}

static void work(uint8_t number)
{
	struct span outer, inner, torn, wild;
	struct item *item = &items[number];

	fill(&outer, number, 1);
	fill(&inner, number, 2);
	fill(&torn, number, 3);
	torn.valid = 2;
	fill(&wild, number, 4);
	wild.n = 65535;	     /* more than is there */
	wild.bytes[9] = 255; /* beyond the end */
	tell(gettid(), "in_outer", &outer);
	tell(gettid(), "in_inner", &inner);
	tell(gettid(), "in_wild", &wild);
	for (;;) {
		set(&outer);
		in_outer();
		set(&inner);
		in_inner();
		set(&outer);
		in_outer();
		set(NULL);
		in_none();
		item = hand_over(item);
		set(&item->span);
		item->work();
		set(&torn);
		in_torn();
		set(&wild);
		in_wild();
		set((void *)8);
		in_none();
		set(NULL);
		rest(20);
	}
}

static void *run(void *arg)
{
	(void)pthread_barrier_wait(&running);
	(void)pthread_barrier_wait(&loaded);
	work((uint8_t)(uintptr_t)arg);
	return NULL;
}

static void publish(void)
{
	/* Attributes 2 of a ProcessContext: the schema, and the list of keys. */
	static const char payload[] = "\x12\x2e"
				      "\x0a\x1athreadlocal.schema_version"
				      "\x12\x10\x0a\x0etlsdesc_v1_dev"
				      "\x12\x40"
				      "\x0a\x1dthreadlocal.attribute_key_map"
				      "\x12\x1f\x2a\x1d"
				      "\x0a\x0c\x0a\x0ahttp.route"
				      "\x0a\x0d\x0a\x0bhttp.method";
	struct published_header *h = published_map(1);
	char *copy =
		malloc(sizeof(payload)); /* as SDKs have it: not in a file, which may not answer */

	if (!h || !copy)
		exit(77);
	memcpy(copy, payload, sizeof(payload));
	published_set(h, copy, sizeof(payload) - 1, 1);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char name[16];

	(void)pthread_barrier_init(&running, NULL, N_THREADS);
	(void)pthread_barrier_init(&loaded, NULL, N_THREADS);
	fill_items();
	for (uintptr_t i = 1; i < N_THREADS; i++)
		(void)pthread_create(&thread, NULL, run, (void *)i);
	(void)pthread_barrier_wait(&running);
#ifdef SLOT_IN_PROGRAM
	slot = span_slot;
#else
	slot = argc > 1 ? (void **(*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "span_slot") : NULL;
#endif
	if (!slot)
		return 1;
	for (int i = 0; i < N_ITEMS; i++) {
		(void)snprintf(name, sizeof(name), "in_handed_%d", i);
		tell(0, name, &items[i].span);
	}
	publish();
	(void)pthread_barrier_wait(&loaded);
	work(0);
	return 0;
}
