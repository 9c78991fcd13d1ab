/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/blocked-chains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/interp.h"
#include "src/profiler/chains.h"
#include "src/profiler/process-memory.h"
#include "src/sample/sample.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/time-share.h"

enum {
	MAX_OPEN = 32, /* each has a descriptor, and up to 2 MiB */
	/* Of one walk: of a deep stack that was never seen. What is learned is kept. */
	MAX_READS = 1500,
	MAX_BYTES = 1 << 20,
	SHARE_PERCENT = 5,
};

/* Of one interpreter. */
struct blocked_chain {
	struct blocked_chains *all;
	struct blocked_chain *next; /* of the same process; owned */
	struct process_memory memory;
	uint64_t image;
	struct interp *interp; /* NULL: it is not open */
	bool hopeless;	       /* none is known there, or not understood; it may come yet */
};

struct blocked_chains {
	struct memory_source source;
	struct time_share share;
	struct blocked_chain
		*open[MAX_OPEN]; /* a ring: the next one takes the oldest one's place */
	uint32_t next;
	struct chained_frame frames[FRAME_RECORD_MAX_FRAMES];
	struct chains chains;
};

int blocked_chains_new(struct blocked_chains **ret, const struct memory_source *source)
{
	struct blocked_chains *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->source = *source;
	c->share.percent = SHARE_PERCENT;
	c->share.save_ns = NSEC_PER_SEC;
	*ret = c;
	return 0;
}

struct blocked_chains *blocked_chains_free(struct blocked_chains *c)
{
	free(c);
	return NULL;
}

/* ---- Processes ---- */

static struct blocked_chain *new_chain(struct blocked_chains *c, uint32_t pid, uint64_t image,
				       uint32_t major, uint32_t minor)
{
	struct blocked_chain *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->all = c;
	p->image = image;
	process_memory_init(&p->memory, &c->source, pid, image, major, minor);
	return p;
}

struct blocked_chain *blocked_chain_new(struct blocked_chains *c, uint32_t pid,
					const uint64_t images[CLIENT_MAX_IMAGES], uint32_t major,
					uint32_t minor)
{
	struct blocked_chain *first = NULL, **place = &first;

	for (int i = 0; i < CLIENT_MAX_IMAGES && images[i]; i++) {
		*place = new_chain(c, pid, images[i], major, minor);
		if (!*place)
			return blocked_chain_free(first);
		place = &(*place)->next;
	}
	return first;
}

static void close_chain(struct blocked_chain *p)
{
	for (int i = 0; i < MAX_OPEN; i++) {
		if (p->all->open[i] == p)
			p->all->open[i] = NULL;
	}
	p->interp = interp_free(p->interp);
	process_memory_leave(&p->memory);
}

struct blocked_chain *blocked_chain_free(struct blocked_chain *p)
{
	while (p) {
		struct blocked_chain *next = p->next;

		close_chain(p);
		process_memory_deinit(&p->memory);
		free(p);
		p = next;
	}
	return NULL;
}

static void keep_open(struct blocked_chain *p)
{
	struct blocked_chain **place = &p->all->open[p->all->next++ % MAX_OPEN];

	if (*place)
		close_chain(*place);
	*place = p;
}

/* Not while it may be about to be loaded. */
static void find_none(struct blocked_chain *p, const char *why)
{
	if (p->hopeless || !process_memory_is_loaded(&p->memory))
		return;
	p->hopeless = true;
	log_debug("process %u: frames of its blocked threads are not read: %s", p->memory.pid, why);
}

/* One that has just begun is tried again, with back-off. */
static bool is_open(struct blocked_chain *p)
{
	const struct memory memory = {.read = process_memory_read, .ctx = &p->memory};
	const char *why = "";
	int r;

	if (p->interp)
		return true;
	if (!process_memory_try(&p->memory))
		return false;
	r = interp_new(&p->interp, &memory, p->image, &why);
	if (r == -ENOTSUP || r == -ENOENT)
		find_none(p, why);
	if (r != 0) {
		process_memory_leave(&p->memory);
		return false;
	}
	p->hopeless = false;
	keep_open(p);
	return true;
}

/* ---- Threads ---- */

/* The code is known only once a walk has found a frame. */
static struct chain_code code_of(const struct interp *p)
{
	struct chain_code code = {.kind = interp_kind(p)};

	while (code.n_ranges < FRAME_RECORD_MAX_RANGES &&
	       interp_eval_range(p, code.n_ranges, &code.ranges[code.n_ranges].start,
				 &code.ranges[code.n_ranges].end))
		code.n_ranges++;
	return code;
}

static void take_frames(struct blocked_chain *p, size_t n, struct chain_places *places)
{
	places->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct chained_frame *f = &p->all->frames[i];

		places->addresses[i] = f->address | f->entry;
		places->frames[i] = (struct runtime_frame){
			.runtime = profile_runtime_of(interp_kind(p->interp)),
			.function = interp_text(p->interp, f->function),
			.file = interp_text(p->interp, f->file),
			.line = f->line,
			.start_line = f->start_line,
		};
	}
}

static enum frame_source_answer walk(struct blocked_chain *p, const struct chained_thread *thread,
				     const struct frame_source_sample *sample, struct chain_of *ret)
{
	struct chain_code code;
	enum chain_result result;
	enum frame_source_answer answer;
	size_t n;

	interp_begin(p->interp, MAX_READS, MAX_BYTES);
	result = interp_walk(p->interp, thread, p->all->frames, FRAME_RECORD_MAX_FRAMES, &n);
	switch (result) {
	case CHAIN_WHOLE:
	case CHAIN_CUT:
		break;
	case CHAIN_NO_THREAD:
		return FRAME_SOURCE_NONE;
	case CHAIN_UNPROVEN:
		/* It may be another program's memory by now. */
		close_chain(p);
		return FRAME_SOURCE_UNPROVEN;
	default:
		return FRAME_SOURCE_MISSED;
	}
	code = code_of(p->interp);
	take_frames(p, n, &ret->places);
	answer = chain_places_find(&ret->places, &code, sample, true, &ret->frames);
	ret->frames.cut = result == CHAIN_CUT;
	return answer;
}

static enum frame_source_answer answer_without(const struct blocked_chain *p)
{
	return p->hopeless || p->interp ? FRAME_SOURCE_UNREAD
	       : p->memory.refused	? FRAME_SOURCE_NONE
					: FRAME_SOURCE_MISSED;
}

/* Those of a kind do, and the next walk may clear them. */
static bool shares_texts(const struct blocked_chain *first, const struct blocked_chain *p)
{
	for (; first != p; first = first->next) {
		if (first->interp && interp_kind(first->interp) == interp_kind(p->interp))
			return true;
	}
	return false;
}

enum frame_source_answer blocked_chain_ask(struct blocked_chain *p, uint32_t own_tid,
					   const struct frame_source_sample *sample,
					   struct runtime_frames *ret)
{
	const struct record *r = sample->record;
	const struct chained_thread thread = {
		.tid = own_tid,
		.n_registers = (uint32_t)__builtin_popcountll(sample_user_regs),
		.registers = r->sample.user_regs,
	};
	struct chains *c = &p->all->chains;

	if (!own_tid || !time_share_begin(&p->all->share, clock_monotonic_ns()))
		return FRAME_SOURCE_MISSED;
	/* Opening one may close another one, whose texts must not be in use by then. */
	for (struct blocked_chain *its = p; its; its = its->next)
		(void)is_open(its);
	c->n = 0;
	for (struct blocked_chain *its = p; its; its = its->next) {
		struct chain_of *chain = &c->of[c->n++];

		chain->image = its->image;
		chain->answer = its->interp && !shares_texts(p, its)
					? walk(its, &thread, sample, chain)
					: answer_without(its);
	}
	time_share_end(&p->all->share, clock_monotonic_ns());
	return chains_merge(c, sample, ret);
}
