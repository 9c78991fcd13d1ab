/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtimes/arch.h"
#include "src/reader/go-threads.h"

enum { N_THREADS = 512 };

struct go_threads {
	struct go_layout layout;
	struct go_thread {
		uint32_t number;
		uint64_t address; /* of its struct; 0: not known */
	} items[N_THREADS];
};

struct go_threads *go_threads_new(const struct go_layout *layout)
{
	struct go_threads *t = calloc(1, sizeof(*t));

	if (t)
		t->layout = *layout;
	return t;
}

/* A program that is linked with a C library has its goroutine among the variables of the thread. */
static uint64_t find_near(const struct go_threads *t, struct memory *m, const struct go_sample *s)
{
	uint64_t words[ARCH_GO_NEAR_WORDS], found = 0;

	if (!s->thread_pointer ||
	    !memory_read(m, s->thread_pointer + (uint64_t)(int64_t)arch_go_near, words,
			 sizeof(words)))
		return 0;
	for (int i = 0; i < ARCH_GO_NEAR_WORDS && !found; i++)
		found = go_thread_of(m, &t->layout, words[i], s->number);
	return found;
}

static uint64_t find(const struct go_threads *t, struct memory *m, const struct go_sample *s)
{
	uint64_t found = go_thread_of(m, &t->layout, s->goroutine, s->number);

	return found ? found : find_near(t, m, s);
}

uint32_t go_threads_read(struct go_threads *t, struct memory *m, const struct go_sample *s,
			 uint8_t ret[GO_LABELS_MAX_BYTES])
{
	struct go_thread *thread = &t->items[s->number % N_THREADS];
	enum go_answer answer = GO_OTHER_THREAD;
	uint32_t n = 0;

	if (thread->number == s->number && thread->address)
		answer = go_labels_read(m, &t->layout, thread->address, s->number, ret, &n);
	if (answer != GO_OTHER_THREAD)
		return answer == GO_LABELS ? n : 0;
	*thread = (struct go_thread){s->number, find(t, m, s)};
	if (thread->address)
		answer = go_labels_read(m, &t->layout, thread->address, s->number, ret, &n);
	return answer == GO_LABELS ? n : 0;
}
