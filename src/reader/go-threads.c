/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each read is a system call. Most samples have their goroutine in its register, which says itself
 * whose it is. The last read is that of the CPU: if the thread is still there, it has stood still,
 * and all is as it was. The memory of labels is used again, so that they are read each time, unless
 * the garbage collector says that it has freed nothing: a set of labels never changes, its
 * goroutine keeps it alive, and what is alive in a cycle of the collector is freed in a later one.
 * In the same cycle the same address is the same set. A cycle is asked for from the second sample
 * with a set on, since most sets of servers are seen once.
 *
 * Of a thread that the C library has begun, memory tells the CPU (contexts.c), which takes half of
 * the time of the kernel's file, and proves more.
 */
#include <stdlib.h>

#include "runtimes/arch.h"
#include "src/reader/go-threads.h"
#include "src/reader/thread-stat.h"
#include "util/hash.h"

enum { N_THREADS = 512, N_SETS = 32 };

/* Labels that have been read, of whatever goroutines. */
struct go_set {
	uint64_t address;
	uint32_t cycle, n; /* n 0: seen, but not kept */
	uint8_t bytes[GO_LABELS_MAX_BYTES];
};

struct go_threads {
	struct go_layout layout;
	struct thread_variable library;
	uint64_t cycle; /* where the collector's cycles are counted; 0: not known */
	struct go_set sets[N_SETS];
	struct go_thread {
		uint32_t number;
		uint64_t address; /* of its struct; 0: not known */
		uint64_t system;  /* a goroutine of the runtime's own; 0: not known */
	} items[N_THREADS];
};

struct go_threads *go_threads_new(const struct go_layout *layout, uint64_t cycle,
				  const struct thread_variable *library)
{
	struct go_threads *t = calloc(1, sizeof(*t));

	if (t) {
		t->layout = *layout;
		t->cycle = cycle;
		t->library = *library;
	}
	return t;
}

/* A program that is linked with a C library has its goroutine among the variables of the thread. */
static uint64_t find_near(const struct go_threads *t, struct memory *m, const struct go_sample *s)
{
	uint64_t thread = thread_pointer_of(m, s->robust_list, s->number, t->library.glibc_bytes);
	uint64_t words[ARCH_GO_NEAR_WORDS], found = 0;

	if (!thread ||
	    !memory_read(m, thread + (uint64_t)(int64_t)arch_go_near, words, sizeof(words)))
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

/* The register has one of the runtime's own while its thread runs the runtime. */
static enum go_answer find_goroutine(const struct go_threads *t, struct go_thread *thread,
				     struct memory *m, const struct go_sample *s,
				     struct go_goroutine *ret)
{
	enum go_answer answer;

	if (s->goroutine != thread->system &&
	    go_goroutine_at(m, &t->layout, s->goroutine, thread->address, ret))
		return GO_FOUND;
	answer = go_goroutine_of(m, &t->layout, thread->address, s->number, ret);
	thread->system = answer == GO_FOUND && ret->address == s->goroutine ? 0 : s->goroutine;
	return answer;
}

/* All that was read is as it was at the sample. Goroutines change threads, and threads CPUs. */
static bool has_stayed(const struct go_threads *t, struct memory *now, const struct go_sample *s)
{
	return (t->library.cpu ? thread_cpu(now, &t->library, s->robust_list, s->number)
			       : thread_stat_cpu(s->stat)) == s->cpu;
}

/* Those of the same set, for another goroutine. */
static uint32_t take_set(const struct go_set *set, const struct go_goroutine *goroutine,
			 uint8_t ret[GO_LABELS_MAX_BYTES])
{
	memcpy(ret, set->bytes, set->n);
	memcpy(ret, &goroutine->number, sizeof(goroutine->number));
	return set->n;
}

/* 0: they cannot be read, or the thread went on meanwhile; so it is not kept. */
static uint32_t read_labels(struct go_threads *t, struct memory *m, struct memory *now,
			    const struct go_sample *s, const struct go_goroutine *goroutine,
			    uint8_t ret[GO_LABELS_MAX_BYTES], bool *ret_stayed)
{
	struct go_set *set = &t->sets[hash_u64(goroutine->labels) % N_SETS];
	bool seen = set->address == goroutine->labels, known;
	uint32_t cycle = 0, n;

	/* In front of the labels: they are of this cycle, or of a later one. */
	known = seen && t->cycle && memory_read(m, t->cycle, &cycle, sizeof(cycle));
	n = known && set->n && set->cycle == cycle ? take_set(set, goroutine, ret)
						   : go_labels_read(m, &t->layout, goroutine, ret);
	*ret_stayed = has_stayed(t, now, s);
	if (!*ret_stayed)
		return 0;
	set->address = n ? goroutine->labels : 0;
	set->cycle = cycle;
	set->n = known ? n : 0;
	memcpy(set->bytes, ret, set->n);
	return n;
}

/* A set without labels is as good as none. */
static bool is_empty(const uint8_t *bytes, uint32_t n)
{
	return n == GO_LABELS_HEAD_BYTES && !go_labels_left_out(bytes);
}

enum frame_record_span go_threads_read(struct go_threads *t, struct memory *sampled,
				       struct memory *now, const struct go_sample *s,
				       uint8_t ret[GO_LABELS_MAX_BYTES], uint32_t *ret_n)
{
	struct go_thread *thread = &t->items[s->number % N_THREADS];
	enum go_answer answer = GO_OTHER_THREAD;
	struct go_goroutine goroutine = {0};
	bool stayed;

	*ret_n = 0;
	if (thread->number == s->number && thread->address)
		answer = find_goroutine(t, thread, sampled, s, &goroutine);
	if (answer == GO_OTHER_THREAD) {
		*thread = (struct go_thread){.number = s->number, .address = find(t, sampled, s)};
		if (thread->address)
			answer = find_goroutine(t, thread, sampled, s, &goroutine);
	}
	if (answer == GO_OTHER_THREAD)
		return FRAME_RECORD_SPAN_UNREADABLE;
	if (answer == GO_NONE || !goroutine.labels)
		return has_stayed(t, now, s) ? FRAME_RECORD_SPAN_NONE : FRAME_RECORD_SPAN_MOVED;
	*ret_n = read_labels(t, sampled, now, s, &goroutine, ret, &stayed);
	if (!*ret_n)
		return stayed ? FRAME_RECORD_SPAN_UNREADABLE : FRAME_RECORD_SPAN_MOVED;
	if (!is_empty(ret, *ret_n))
		return FRAME_RECORD_SPAN_READ;
	*ret_n = 0;
	return FRAME_RECORD_SPAN_NONE;
}
