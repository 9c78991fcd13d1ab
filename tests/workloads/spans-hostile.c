/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that means harm with its contexts (OTEP 4719, 4947):
 *
 *	spans-hostile threads	its threads publish what is no context, or one that never is at rest
 *	spans-hostile process	its own context is another one each time, and none is right
 *
 * In in_torn, another thread writes the record all the time: its ids are all bytes A1, or all B2.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/context-publisher.h"
#include "common.h"

struct __attribute__((packed, aligned(2))) span {
	uint8_t trace[16], id[8];
	volatile uint8_t valid;
	uint8_t flags;
	uint16_t n;
	uint8_t bytes[600];
};

enum { PAGE = 4096 };

void **span_slot(void);

static struct span torn, empty, names;
static uint8_t *last; /* the end of the page that nothing follows */

#define WORK(name)                                                                                 \
	KNOWN void in_##name(void)                                                                 \
	{                                                                                          \
		SPIN(SPIN_SHORT * 4);                                                              \
		KEEP_FRAME();                                                                      \
	}
WORK(cut)
WORK(wide)
WORK(loop)
WORK(nowhere)
WORK(empty)
WORK(names)
WORK(torn)
WORK(context)

static void set(void *s)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(void *volatile *)span_slot() = s;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static struct span *head_at(uint8_t *at, uint16_t n)
{
	memset(at, 0xcc, (size_t)(last - at < 28 ? last - at : 28));
	if (last - at >= 28) {
		at[24] = 1;
		memcpy(at + 26, &n, sizeof(n));
	}
	return (struct span *)at;
}

static void *write_torn(void *arg)
{
	for (uint8_t byte = 0xa1;; byte = byte == 0xa1 ? 0xb2 : 0xa1) {
		__atomic_store_n(&torn.valid, 0, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 16; i++)
			__atomic_store_n(&torn.trace[i], byte, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 8; i++)
			__atomic_store_n(&torn.id[i], byte, __ATOMIC_SEQ_CST);
		__atomic_store_n(&torn.valid, 1, __ATOMIC_SEQ_CST);
		rest(20);
	}
	return NULL;
}

static void *work(void *arg)
{
	for (;;) {
		set(head_at(last - 20, 0));
		in_cut();
		set(head_at(last - 28, 65535));
		in_wide();
		set(span_slot()); /* the record is the variable, which points to itself */
		in_loop();
		set((void *)0xffffffff81000000);
		in_nowhere();
		set((void *)0x00dead0000000000);
		in_nowhere();
		set(last);
		in_nowhere();
		set(&empty);
		in_empty();
		set(&names);
		in_names();
		set(&torn);
		in_torn();
		set(NULL);
		rest(20);
	}
	return NULL;
}

/* The names of all attributes of threads: those by which outputs say whose a sample is, one that is
 * repeated, and long ones. */
static const char *const own_names[] = {
	"thread.id",	  "thread.name",  "cpu.logical_number", "comm",	 "container",
	"container_name", "service.name", "trace_id",		"route", "route"};
enum { N_NAMES = 256, N_OWN = sizeof(own_names) / sizeof(own_names[0]), LONG_NAME = 127 };

static uint8_t payload[65536];
static uint32_t n_payload;

static void make_payload(void)
{
	static uint8_t list[45000], both[50000];
	uint8_t *at = list, *end = payload;

	for (uint32_t i = 0; i < N_NAMES; i++) {
		uint8_t text[2 * LONG_NAME];
		char name[LONG_NAME + 1];
		const char *it = i < N_OWN ? own_names[i] : name;

		(void)snprintf(name, sizeof(name), "%0*u", LONG_NAME, i);
		at = published_put(at, 1, text,
				   (size_t)(published_put(text, 1, it, strlen(it)) - text));
	}
	end = published_put_pair(end, 2, "threadlocal.schema_version", 1, "tlsdesc_v1_dev", 14,
				 both);
	end = published_put_pair(end, 2, "threadlocal.attribute_key_map", 5, list,
				 (size_t)(at - list), both);
	n_payload = (uint32_t)(end - payload);
}

/* A sound record of a span, whose attributes use all of these names as far as they fit. */
static void make_names(void)
{
	memset(names.trace, 0xc3, sizeof(names.trace));
	memset(names.id, 0xc3, sizeof(names.id));
	names.valid = 1;
	for (uint32_t i = 0; names.n + 3U <= sizeof(names.bytes); i++) {
		names.bytes[names.n++] = (uint8_t)i;
		names.bytes[names.n++] = 1;
		names.bytes[names.n++] = '7';
	}
}

static void *write_contexts(void *arg)
{
	static char wild[65536];
	struct published_header *h = arg;

	memset(wild, 0xff, sizeof(wild));
	for (uint64_t i = 1;; i++) {
		static const uint32_t sizes[] = {UINT32_MAX, sizeof(wild), 1 << 16, 0, 48};
		const void *places[] = {wild, h, (void *)0xffffffff81000000, last, wild + 65000};

		published_set(h, places[i % 5], sizes[i / 5 % 5], i % 3 ? i : 0);
		(void)usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct published_header *h = published_map(1);
	pthread_t thread;
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!h || pages == MAP_FAILED || munmap(pages + PAGE, PAGE) != 0)
		return 77;
	last = pages + PAGE;
	empty.valid = 1;
	empty.n = sizeof(empty.bytes); /* 300 attributes without a text */
	for (uint32_t i = 0; i < sizeof(empty.bytes) / 2; i++)
		empty.bytes[2 * i] = (uint8_t)i;
	if (argc > 1 && strcmp(argv[1], "process") == 0) {
		(void)pthread_create(&thread, NULL, write_contexts, h);
		for (;;) {
			in_context();
			rest(20);
		}
	}
	make_payload();
	make_names();
	published_set(h, payload, n_payload, 1);
	(void)pthread_create(&thread, NULL, write_torn, NULL);
	(void)work(NULL);
	return 0;
}
