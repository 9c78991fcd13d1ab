/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service whose requests are spans, as an SDK has them: it publishes its resource (OTEP 4719) and
 * the span of each thread (OTEP 4947), and prints each span that has ended.
 *
 *	traced SERVICE INSTANCE NUMBER
 *
 * A request is a span (in_request) with another one inside it (in_query), then work in no span
 * (in_between). Services that differ in their NUMBER take part in the same traces. A line has the
 * trace, the span, its parent or "-", its name, and its begin and end in nanoseconds of Unix time.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/context-publisher.h"
#include "common.h"

enum { N_THREADS = 2, WORK_NS = 15000000 };

struct __attribute__((packed, aligned(2))) span {
	uint8_t trace[16], id[8], valid, flags;
	uint16_t n;
};

void **span_slot(void);

static uint8_t number; /* of this service */

#define WORK(name)                                                                                 \
	KNOWN void in_##name(void)                                                                 \
	{                                                                                          \
		const uint64_t end_ns = thread_cpu_ns() + WORK_NS;                                 \
		while (thread_cpu_ns() < end_ns)                                                   \
			SPIN(SPIN_SHORT);                                                          \
		KEEP_FRAME();                                                                      \
	}
WORK(request)
WORK(query)
WORK(between)

static void set(struct span *s)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(void *volatile *)span_slot() = s;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static uint64_t unix_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The trace is that of a thread's request, whichever service has it. */
static void fill(struct span *s, uint8_t thread, uint32_t request, uint8_t kind)
{
	memset(s, 0, sizeof(*s));
	s->trace[0] = (uint8_t)(thread + 1);
	memcpy(s->trace + 4, &request, sizeof(request));
	s->id[0] = (uint8_t)(number + 1);
	s->id[1] = (uint8_t)(thread + 1);
	s->id[2] = kind;
	memcpy(s->id + 4, &request, sizeof(request));
	s->valid = 1;
}

static const char *hex(char *text, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static void tell(const struct span *s, const struct span *parent, const char *name,
		 uint64_t begin_ns)
{
	char trace[33], id[17], of[17];
	uint64_t end_ns = unix_ns();

	(void)printf("%s %s %s %s %llu %llu\n", hex(trace, s->trace, 16), hex(id, s->id, 8),
		     parent ? hex(of, parent->id, 8) : "-", name, (unsigned long long)begin_ns,
		     (unsigned long long)end_ns);
	(void)fflush(stdout);
}

static void *work(void *arg)
{
	uint8_t thread = (uint8_t)(uintptr_t)arg;
	struct span request, query;

	for (uint32_t i = 1;; i++) {
		uint64_t begin_ns = unix_ns(), query_ns;

		fill(&request, thread, i, 1);
		set(&request);
		in_request();
		query_ns = unix_ns();
		fill(&query, thread, i, 2);
		set(&query);
		in_query();
		set(&request);
		tell(&query, &request, "query", query_ns);
		in_request();
		set(NULL);
		tell(&request, NULL, "request", begin_ns);
		in_between();
		rest(20);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static uint8_t resource[2048], both[1024];
	uint8_t *payload = malloc(4096); /* where SDKs have it: not in the program's file */
	struct published_header *h = published_map(1);
	uint8_t *at = resource, *end;
	pthread_t thread;

	if (argc < 4 || !h || !payload)
		return argc < 4 ? 2 : 77;
	number = (uint8_t)atoi(argv[3]);
	at = published_put_pair(at, 1, "service.name", 1, argv[1], strlen(argv[1]), both);
	at = published_put_pair(at, 1, "service.instance.id", 1, argv[2], strlen(argv[2]), both);
	end = published_put(payload, 1, resource, (size_t)(at - resource));
	end = published_put_pair(end, 2, "threadlocal.schema_version", 1, "tlsdesc_v1", 10, both);
	published_set(h, payload, (uint32_t)(end - payload), unix_ns());
	for (uintptr_t i = 1; i < N_THREADS; i++)
		(void)pthread_create(&thread, NULL, work, (void *)i);
	(void)work(NULL);
	return 0;
}
