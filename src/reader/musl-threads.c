/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "src/reader/musl-threads.h"
#include "util/clock.h"

enum { N_THREADS = 1024 };
#define SEARCH_AGAIN_NS (100 * NSEC_PER_MSEC) /* after one that found nothing */

struct musl_threads {
	uint64_t first, next_search_ns;
	struct known_thread {
		uint32_t number;
		uint64_t address; /* of its struct; 0: not known */
	} items[N_THREADS];
};

struct musl_threads *musl_threads_new(uint64_t first)
{
	struct musl_threads *t = calloc(1, sizeof(*t));

	if (t)
		t->first = first;
	return t;
}

/* Goes around the ring, and keeps all that it meets. A new thread is behind the one that made it.
 */
static uint64_t search(struct musl_threads *t, struct memory *m, uint32_t number, uint64_t now_ns)
{
	struct musl_thread thread = {.next = t->first};
	uint64_t at;

	if (now_ns < t->next_search_ns)
		return 0;
	do {
		at = thread.next;
		if (!musl_thread_read(m, at, &thread))
			break;
		t->items[thread.number % N_THREADS] = (struct known_thread){thread.number, at};
		if (thread.number == number)
			return thread.pointer;
	} while (thread.next != t->first);
	t->next_search_ns = now_ns + SEARCH_AGAIN_NS;
	return 0;
}

uint64_t musl_threads_pointer(struct musl_threads *t, struct memory *m, uint32_t number,
			      uint64_t now_ns)
{
	const struct known_thread *known = &t->items[number % N_THREADS];
	struct musl_thread thread;

	if (known->number == number && known->address &&
	    musl_thread_read(m, known->address, &thread) && thread.number == number)
		return thread.pointer;
	return search(t, m, number, now_ns);
}
