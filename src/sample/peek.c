/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A position of our own goes from record to record. The kernel overwrites nothing that the owner
 * has not read; but what the owner has read may be overwritten while we look at it, so a record
 * counts only if it was still there afterwards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/sample/arch.h"
#include "src/sample/event.h"
#include "src/sample/peek.h"

enum { MAX_RECORD = 65536 }; /* its size has 16 bits */

struct peek {
	struct ring ring;
	struct record_layout layout;
	uint64_t at;		      /* where the last record ends */
	uint64_t seen[PEEK_MAX];      /* where the newest samples begin: a ring */
	uint32_t n_seen, next;	      /* of all samples that were new; the one to be returned */
	uint64_t current;	      /* where that begins that was returned last */
	uint64_t *copy;		      /* of a record that wraps */
	size_t ids, time, cpu, least; /* offsets in a sample; its least size */
};

/* In the order in which the kernel writes them (perf_event_open(2), PERF_RECORD_SAMPLE). */
static void find_offsets(struct peek *p, uint64_t type)
{
	size_t at = sizeof(struct perf_event_header);

	at += type & PERF_SAMPLE_IDENTIFIER ? 8 : 0;
	at += type & PERF_SAMPLE_IP ? 8 : 0;
	p->ids = at;
	p->time = at + 8;
	at += 16;
	at += type & PERF_SAMPLE_ADDR ? 8 : 0;
	at += type & PERF_SAMPLE_ID ? 8 : 0;
	at += type & PERF_SAMPLE_STREAM_ID ? 8 : 0;
	p->cpu = at;
	p->least = at + 8;
}

static uint64_t load_head(const struct peek *p)
{
	return __atomic_load_n(&p->ring.page->data_head, __ATOMIC_ACQUIRE);
}

int peek_new(struct peek **ret, const struct sample_options *options,
	     const struct sample_features *features, int fd, uint64_t ring_bytes)
{
	struct peek *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	event_layout(options, features, false, &p->layout);
	find_offsets(p, p->layout.sample_type);
	p->copy = malloc(MAX_RECORD);
	r = p->copy ? ring_map(&p->ring, fd, &ring_bytes, false) : -ENOMEM;
	if (r < 0) {
		free(p->copy);
		free(p);
		return r;
	}
	p->at = p->current = load_head(p);
	*ret = p;
	return 0;
}

struct peek *peek_free(struct peek *p)
{
	if (p) {
		ring_unmap(&p->ring);
		free(p->copy);
	}
	free(p);
	return NULL;
}

/* Words are 8 bytes at multiples of 8, so they never wrap. */
static uint64_t word_at(const struct peek *p, uint64_t at)
{
	uint64_t v;

	memcpy(&v, p->ring.data + (at & (p->ring.data_bytes - 1)), sizeof(v));
	return v;
}

static struct peek_sample sample_at(const struct peek *p, uint64_t at)
{
	uint64_t ids = word_at(p, at + p->ids);

	return (struct peek_sample){
		.time_ns = word_at(p, at + p->time),
		.pid = (uint32_t)ids,
		.tid = (uint32_t)(ids >> 32),
		.cpu = (uint32_t)word_at(p, at + p->cpu),
	};
}

uint32_t peek_look(struct peek *p, uint32_t n)
{
	uint64_t head = load_head(p), begin = p->at;
	struct perf_event_header h;

	p->next = p->n_seen = 0;
	if (head - begin > p->ring.data_bytes)
		begin = head;
	for (p->at = head; begin != head; begin += h.size) {
		uint64_t word = word_at(p, begin);

		memcpy(&h, &word, sizeof(h));
		if (h.size < sizeof(h) || h.size % 8 || h.size > head - begin) {
			p->n_seen = 0;
			return 0;
		}
		if (h.type == PERF_RECORD_SAMPLE && h.size >= p->least)
			p->seen[p->n_seen++ % PEEK_MAX] = begin;
	}
	p->next = p->n_seen > n ? p->n_seen - n : 0;
	return p->next;
}

bool peek_next(struct peek *p, struct peek_sample *ret)
{
	while (p->next < p->n_seen) {
		p->current = p->seen[p->next++ % PEEK_MAX];
		*ret = sample_at(p, p->current);
		if (peek_is_there(p))
			return true;
	}
	return false;
}

/* A part of it may have been overwritten meanwhile. */
bool peek_is_there(const struct peek *p)
{
	return load_head(p) - p->current <= p->ring.data_bytes / 2;
}

static const void *whole_record(struct peek *p, size_t n)
{
	size_t offset = p->current & (p->ring.data_bytes - 1), first = p->ring.data_bytes - offset;

	if (n <= first)
		return p->ring.data + offset;
	memcpy(p->copy, p->ring.data + offset, first);
	memcpy((uint8_t *)p->copy + first, p->ring.data, n - first);
	return p->copy;
}

bool peek_record(struct peek *p, struct record *ret)
{
	struct perf_event_header h;
	uint64_t word = word_at(p, p->current);

	memcpy(&h, &word, sizeof(h));
	return h.type == PERF_RECORD_SAMPLE && h.size >= p->least && h.size <= p->ring.data_bytes &&
	       record_decode(&p->layout, whole_record(p, h.size), h.size, ret) &&
	       ret->type == RECORD_SAMPLE;
}

uint64_t peek_register(const struct peek *p, const struct record *r, int number)
{
	uint64_t mask = p->layout.regs_mask;

	return r->sample.user_regs && (mask & r->sample.user_regs_valid & UINT64_C(1) << number)
		       ? arch_register(mask, r->sample.user_regs, (uint32_t)number)
		       : 0;
}

const uint8_t *peek_stack(const struct peek *p, const struct record *r, uint64_t *ret_start,
			  uint64_t *ret_n)
{
	uint64_t mask = p->layout.regs_mask;

	if (r->sample.n_stack == 0 || !r->sample.user_regs ||
	    !(mask & r->sample.user_regs_valid & UINT64_C(1) << arch_sp))
		return NULL;
	*ret_start = arch_register(mask, r->sample.user_regs, arch_sp);
	*ret_n = r->sample.n_stack;
	return r->sample.stack;
}
