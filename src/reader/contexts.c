/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each read is a system call. A thread can go on only on another CPU, and there the kernel first
 * writes that one's number beside the variable, for its restartable sequences (rseq(2)). So the CPU
 * is read last, with the variable where that lies beside it: then the thread has stood still, and
 * all that was read is as it was. Most samples take two reads: the page of the last record, where
 * the next one probably is, too, and the variable with the CPU behind it. In one read the kernel
 * copies both within some nanoseconds; a thread needs more from the one write to the other.
 *
 * Of threads without that number the kernel says the CPU in a file of each. That is read last, too,
 * and takes twice as long as a read of memory.
 *
 * Libraries that are loaded later have their variables on the heap. A thread's record may lie close
 * to its own: then one read takes both.
 */
#include <stdlib.h>
#include <string.h>

#include "runtimes/node-context.h"
#include "src/reader/contexts.h"
#include "src/reader/musl-threads.h"
#include "src/reader/thread-stat.h"
#include "util/clock.h"

enum { N_THREADS = 256, PAGE = 4096 };
_Static_assert(sizeof(struct node_variable) == THREAD_VARIABLE_MAX_WORDS * sizeof(uint64_t),
	       "as many words");
/* Then the number of a thread may be another's, and a library gone. */
#define KEEP_NS NSEC_PER_SEC

struct contexts {
	struct thread_variable variable;
	struct musl_threads *musl; /* NULL: they are glibc's */
	/* What was read first, where the record was guessed. */
	uint64_t first_at;
	uint32_t n_first;
	uint8_t first[PAGE];
	struct context_thread {
		uint32_t number;
		uint64_t variable, found_ns; /* its address; 0: not known */
		/* The last one that was proven. */
		uint64_t record;
		uint32_t n;
		bool stays;			    /* in the page of the one before it */
		struct node_variable node_variable; /* as it was at node_ns */
		uint64_t node_ns;		    /* 0: not read */
		struct node_context node;
		uint64_t kind; /* of the object with a record that was proven */
	} items[N_THREADS];
};

struct contexts *contexts_new(const struct thread_variable *variable)
{
	struct contexts *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->variable = *variable;
	if (variable->musl_thread)
		c->musl = musl_threads_new(variable->musl_thread);
	if (variable->musl_thread && !c->musl)
		return contexts_free(c);
	return c;
}

struct contexts *contexts_free(struct contexts *c)
{
	if (c)
		free(c->musl);
	free(c);
	return NULL;
}

static struct context_thread *thread_of(struct contexts *c, uint32_t number)
{
	struct context_thread *t = &c->items[number % N_THREADS];

	if (t->number != number)
		*t = (struct context_thread){.number = number};
	return t;
}

static bool find_musl(const struct contexts *c, struct memory *m, const struct context_sample *s,
		      uint64_t *ret)
{
	struct memory ring = {.read = m->read,
			      .ctx = m->ctx,
			      .reads_left = MUSL_THREADS_MAX_READS,
			      .bytes_left = MUSL_THREADS_MAX_BYTES};
	uint64_t thread = musl_threads_pointer(c->musl, &ring, s->number, s->now_ns);

	return thread && thread_variable_musl_address(m, &c->variable, thread, ret);
}

static bool is_far_known(const struct context_thread *t, const struct context_sample *s)
{
	return t->variable && s->now_ns - t->found_ns < KEEP_NS;
}

/* Where the variable is in a block of its own, or the thread's struct is far. t->variable 0: the
 * thread has none yet. */
static bool find_far(const struct contexts *c, struct context_thread *t, struct memory *m,
		     const struct context_sample *s)
{
	if (is_far_known(t, s))
		return true;
	t->variable = 0;
	t->found_ns = s->now_ns;
	return c->musl ? find_musl(c, m, s, &t->variable)
		       : thread_variable_address(m, &c->variable, s->robust_list, s->number,
						 &t->variable);
}

/* Where the next record may be. */
enum first_read {
	FIRST_NONE, /* nobody would guess that */
	FIRST_PAGE, /* in the page of the last one */
	FIRST_BOTH, /* close to the variable, which is read at once with it */
};

static bool read_range(struct contexts *c, struct memory *m, uint64_t start, uint64_t end)
{
	c->first_at = start;
	c->n_first = (uint32_t)(end - start);
	return memory_read(m, start, c->first, c->n_first);
}

static bool read_both(struct contexts *c, const struct context_thread *t, struct memory *m)
{
	uint64_t start = t->variable < t->record ? t->variable : t->record;
	uint64_t end =
		t->variable < t->record ? t->record + t->n : t->variable + sizeof(t->variable);

	return end - start <= PAGE && read_range(c, m, start, end);
}

/* The page is of use where the CPU comes with the variable, or is not known. Of Node.js it is read
 * after the record anyway: more than a word leads there. */
static enum first_read read_first(struct contexts *c, const struct context_thread *t,
				  struct memory *m, const struct context_sample *s)
{
	uint64_t page = t->record - t->record % PAGE;

	if (!t->record || c->variable.node)
		return FIRST_NONE;
	if (is_far_known(t, s) && read_both(c, t, m))
		return FIRST_BOTH;
	return t->stays && !(t->variable && c->variable.cpu) && read_range(c, m, page, page + PAGE)
		       ? FIRST_PAGE
		       : FIRST_NONE;
}

/* A record, and what leads to it: a word that the thread changes when it leaves the span. */
struct found_record {
	bool known;	 /* all that leads there was read */
	uint64_t record; /* 0: the thread has none */
	uint64_t word_at, word;
	uint32_t cpu; /* as it was with the word; THREAD_NO_CPU: not known */
	/* Of Node.js, else 0: the address of the storage's object, and the kind of the object with
	 * the record. */
	uint64_t storage_at, storage, kind;
};

/* The variable leads to it. */
static struct found_record find_in_node(struct context_thread *t, struct memory *m)
{
	struct node_context node;

	if (!node_context_find(m, &t->node_variable, &t->node, &node))
		return (struct found_record){.known = false};
	if (node.record)
		t->node = node;
	return (struct found_record){.known = true,
				     .record = node.record,
				     .word_at = node.slot,
				     .word = node.map,
				     .cpu = THREAD_NO_CPU,
				     .storage_at = node.storage,
				     .storage = node.key,
				     .kind = node.kind};
}

static struct found_record find_in_first(const struct contexts *c, const struct context_thread *t)
{
	uint64_t word = memory_u64_of(c->first, (int32_t)(t->variable - c->first_at));

	return (struct found_record){.known = true,
				     .record = word,
				     .word_at = t->variable,
				     .word = word,
				     .cpu = THREAD_NO_CPU};
}

static struct found_record find_record(const struct contexts *c, struct context_thread *t,
				       struct memory *m, const struct context_sample *s,
				       enum first_read first)
{
	size_t n_words = c->variable.node ? THREAD_VARIABLE_MAX_WORDS : 1;
	struct thread_near near;

	if (first == FIRST_BOTH)
		return find_in_first(c, t);
	/* It is the same as long as the thread runs JavaScript. */
	if (t->node_ns && s->now_ns - t->node_ns < KEEP_NS)
		return find_in_node(t, m);
	if (!thread_variable_read_near(m, &c->variable, s->robust_list, s->number, n_words,
				       &near)) {
		bool found = find_far(c, t, m, s);

		near.cpu = THREAD_NO_CPU;
		near.address = t->variable;
		if (!found || !near.address ||
		    !memory_read(m, near.address, near.words, n_words * sizeof(near.words[0])))
			return (struct found_record){.known = found && !near.address,
						     .cpu = THREAD_NO_CPU};
	}
	if (c->variable.node) {
		if (memcmp(&t->node_variable, near.words, sizeof(t->node_variable)) != 0)
			t->kind = 0;
		memcpy(&t->node_variable, near.words, sizeof(t->node_variable));
		t->node_ns = t->node_variable.slot ? s->now_ns : 0;
		return find_in_node(t, m);
	}
	return (struct found_record){.known = true,
				     .record = near.words[0],
				     .word_at = near.address,
				     .word = near.words[0],
				     .cpu = near.cpu};
}

/* The record as it was then. false: it is not there, or not whole. */
static bool take_from_first(const struct contexts *c, uint64_t record,
			    uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n)
{
	uint64_t at = record - c->first_at;

	if (at > c->n_first || c->n_first - at < THREAD_CONTEXT_HEAD_BYTES)
		return false;
	*ret_n = thread_context_bytes(c->first + at);
	if (*ret_n > c->n_first - at)
		return false;
	memcpy(ret, c->first + at, *ret_n);
	return true;
}

/* guess: the record came with it. In its page it was read before the variable and the CPU. */
static bool has_stayed(const struct contexts *c, struct memory *now, const struct context_sample *s,
		       const struct found_record *found, enum first_read guess)
{
	uint32_t cpu = guess ? found->cpu : THREAD_NO_CPU;

	if (!c->variable.cpu)
		return thread_stat_cpu(s->stat) == s->cpu;
	if (cpu == THREAD_NO_CPU)
		cpu = thread_cpu(now, &c->variable, s->robust_list, s->number);
	return cpu == s->cpu;
}

/* The record was found by where the storage's object was. V8 moves objects: another storage's may
 * be there now, but no object of the tracer's kind is in that one. */
static bool is_of_storage(const struct context_thread *t, struct memory *now,
			  const struct found_record *found)
{
	return !found->storage_at || (t->kind && t->kind == found->kind) ||
	       memory_u64(now, found->storage_at) == found->storage;
}

/* n bytes of the record were read. */
static enum frame_record_span prove(struct contexts *c, struct context_thread *t,
				    struct memory *now, const struct context_sample *s,
				    const struct found_record *found, enum first_read guess,
				    uint32_t n)
{
	if (!is_of_storage(t, now, found)) {
		t->node = (struct node_context){0};
		return FRAME_RECORD_SPAN_UNREADABLE;
	}
	if (!has_stayed(c, now, s, found, guess))
		return FRAME_RECORD_SPAN_MOVED;
	t->kind = found->kind;
	t->stays = t->record && t->record / PAGE == found->record / PAGE;
	t->record = found->record;
	t->n = n;
	return FRAME_RECORD_SPAN_READ;
}

/* The thread is in no span, unless that is so only since it went on. */
static enum frame_record_span prove_none(const struct contexts *c, struct memory *now,
					 const struct context_sample *s,
					 const struct found_record *found)
{
	return has_stayed(c, now, s, found, FIRST_PAGE) ? FRAME_RECORD_SPAN_NONE
							: FRAME_RECORD_SPAN_MOVED;
}

enum frame_record_span contexts_read(struct contexts *c, struct memory *sampled, struct memory *now,
				     const struct context_sample *s,
				     uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n)
{
	struct context_thread *t = thread_of(c, s->number);
	enum first_read first = read_first(c, t, sampled, s), guess = first;
	const struct found_record found =
		find_record(c, t, first == FIRST_PAGE ? now : sampled, s, first);
	enum frame_record_span span;
	uint32_t n = 0;
	int r = 0;

	*ret_n = 0;
	if (found.known && !found.record)
		return prove_none(c, now, s, &found);
	if (!found.known)
		return FRAME_RECORD_SPAN_UNREADABLE;
	if (!first || !take_from_first(c, found.record, ret, &n)) {
		guess = FIRST_NONE;
		r = thread_context_read(sampled, found.record, ret);
		n = r > 0 ? (uint32_t)r : 0;
	}
	t->stays = t->stays && n;
	if (!n)
		return r < 0 ? FRAME_RECORD_SPAN_UNREADABLE : FRAME_RECORD_SPAN_HALF;
	span = prove(c, t, now, s, &found, guess, n);
	*ret_n = span == FRAME_RECORD_SPAN_READ ? n : 0;
	return span;
}
