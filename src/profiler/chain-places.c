/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/chain-places.h"

#include <string.h>

#include "src/host/host.h"
#include "src/sample/sample.h"

enum { COMPILED_FRAME_BYTES = 512 };

struct placing {
	const struct frame_source_sample *sample;
	const struct chain_code *code;
	const struct chain_rules *rules;
	struct chain_places *chain;
	uint32_t next; /* of the chain's frames */
	size_t from;   /* the native frame behind the last evaluation */
	bool strict;   /* what the copy of the stack lacks proves nothing */
	bool still;    /* as in chain_places_find() */
	bool seen;     /* all calls so far: what proves them was there */
	bool lacks;    /* the native stack has more calls than the chain */
};

/* 0: it is of a function that is not evaluated. */
static uint64_t address_of(const struct placing *p, uint32_t i)
{
	return p->chain->addresses[i] & ~UINT64_C(1);
}

/* Of the next frame that is evaluated; 0: there is none. */
static uint64_t next_address(const struct placing *p)
{
	for (uint32_t i = p->next; i < p->chain->n; i++) {
		if (address_of(p, i))
			return address_of(p, i);
	}
	return 0;
}

static bool is_in_evaluation(const struct placing *p, size_t i)
{
	uint64_t address = p->sample->frames[i].address;

	for (uint32_t k = 0; k < p->code->n_ranges; k++) {
		if (address >= p->code->ranges[k].start && address < p->code->ranges[k].end)
			return true;
	}
	return false;
}

/* Of a process with much compiled code each frame is looked for among thousands of mappings. */
static bool is_in_no_file(const struct host_process *process, uint64_t address)
{
	uint32_t low = 0, high = process ? process->n_mappings : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct host_mapping *m = &process->mappings[middle];

		if (address >= m->start && address < m->end)
			return m->kind == HOST_MAPPING_ANON;
		if (address < m->start)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

/* Compiled code that is called instead of the evaluation, and not by it. */
static bool is_instead(const struct placing *p, size_t i)
{
	return p->rules->calls_compiled && i + 1 < p->sample->n &&
	       is_in_no_file(p->sample->process, p->sample->frames[i].address) &&
	       !is_in_evaluation(p, i + 1);
}

static bool is_evaluation(const struct placing *p, size_t i)
{
	return is_in_evaluation(p, i) || is_instead(p, i);
}

static bool is_in_registers(const struct record *r, uint64_t value)
{
	uint32_t n = r->sample.user_regs ? (uint32_t)__builtin_popcountll(sample_user_regs) : 0;

	for (uint32_t i = 0; i < n; i++) {
		if (r->sample.user_regs[i] == value)
			return true;
	}
	return false;
}

/* In the copy of the stack between these addresses; *ret_all: it has all of it. */
static bool is_on_stack(const struct placing *p, uint64_t low, uint64_t high, uint64_t value,
			bool *ret_all)
{
	const struct record *r = p->sample->record;
	uint64_t start = p->sample->frames[0].sp, end = start + r->sample.n_stack, word;

	*ret_all = low >= start && high <= end && high > low;
	low = low < start ? start : (low + 7) & ~UINT64_C(7);
	high = high > end ? end : high;
	for (; low + sizeof(word) <= high; low += sizeof(word)) {
		memcpy(&word, r->sample.stack + (low - start), sizeof(word));
		if (word == value)
			return true;
	}
	return false;
}

/* Native frame i evaluates the next frame of the stack: the evaluation has it somewhere in its own
 * part of the native stack, or its callees have saved it in theirs. */
static bool is_proven(struct placing *p, size_t i)
{
	const struct unwind_frame *frames = p->sample->frames;
	uint64_t value = next_address(p);
	uint64_t high = i + 1 < p->sample->n ? frames[i + 1].sp : UINT64_MAX;
	size_t from = p->from - (p->from > 0 && p->rules->callee_saves);
	bool all;

	if (!value)
		return false;
	if (p->from == 0 && is_in_registers(p->sample->record, value))
		return true;
	if (is_on_stack(p, frames[from].sp, high, value, &all))
		return true;
	p->seen = false;
	return (!all && !p->strict) || (p->still && p->from == 0 && !p->strict);
}

/* At native frame i, or beyond all of them. */
static void place_next(struct placing *p, uint32_t i)
{
	p->chain->natives[p->next] = i;
	p->chain->frames[p->next++].sp = i < UINT32_MAX ? p->sample->frames[i].sp : UINT64_MAX;
}

static void place_call(struct placing *p, uint32_t i)
{
	bool entry = false;

	while (!entry && p->next < p->chain->n) {
		entry = p->chain->addresses[p->next] & 1;
		place_next(p, i);
	}
}

/* A greenlet's chain begins with it, while its native stack goes on with that of who started it. */
static bool begins_anew(const struct placing *p)
{
	return p->rules->begins_anew && p->seen && p->from > 0 && p->next == p->chain->n &&
	       (p->chain->addresses[p->chain->n - 1] & 1);
}

/* Each native call of the evaluation, behind the first n_skip of them, has its frames. */
static bool place_calls(struct placing *p, uint32_t n_skip)
{
	const struct frame_source_sample *s = p->sample;

	for (size_t i = 0; i < s->n; i++) {
		if (!is_evaluation(p, i))
			continue;
		if (i < CHAIN_PLACES_MAX_NATIVE)
			p->chain->functions[i] = p->code->ranges[0].start;
		if (s->frames[i].sp == 0)
			break;
		if (n_skip > 0) {
			n_skip--;
			continue;
		}
		p->lacks = p->lacks || begins_anew(p);
		if (p->lacks)
			continue;
		if (p->next == p->chain->n || !is_proven(p, i))
			return false;
		place_call(p, (uint32_t)i);
		p->from = i + 1;
		p->strict = false;
	}
	return true;
}

/*
 * The walk has ended before any evaluation: in code that the interpreter has compiled, or in code
 * without unwind information. The innermost frame must be there or, if we know which thread's chain
 * it is, anywhere in the copy; we know nothing of the calls of others.
 */
static bool ends_early(const struct placing *p)
{
	const struct frame_source_sample *s = p->sample;
	uint64_t value = next_address(p), high;
	bool all;

	if (p->from > 0 || s->whole || s->n == 0 || !value || !p->rules->compiles)
		return false;
	high = p->rules->is_anyones ? s->frames[s->n - 1].sp + COMPILED_FRAME_BYTES : UINT64_MAX;
	return is_in_registers(s->record, value) ||
	       is_on_stack(p, s->frames[0].sp, high, value, &all);
}

/* Neither the chain nor the native stack has an evaluation: there are functions in C alone. */
static bool has_none(const struct placing *p)
{
	return !p->rules->is_anyones && !next_address(p);
}

/* Does the native stack have these frames, and no others? */
static enum frame_source_answer place(struct placing *p, uint32_t n_skip)
{
	memset(p->chain->functions, 0, sizeof(p->chain->functions));
	if (!place_calls(p, n_skip))
		return FRAME_SOURCE_UNPROVEN;
	if (p->from == 0 && p->chain->n == 0)
		return FRAME_SOURCE_NONE;
	if (p->from == 0 && p->sample->whole && p->rules->is_anyones)
		return FRAME_SOURCE_NONE;
	if ((p->from == 0 && !has_none(p) && !ends_early(p)) ||
	    (p->sample->whole && next_address(p)))
		return FRAME_SOURCE_UNPROVEN;
	/* The native stack was not followed that far. */
	while (p->next < p->chain->n)
		place_next(p, UINT32_MAX);
	return FRAME_SOURCE_READY;
}

/*
 * The innermost native call is about to begin, and the chain has its frame; or it has just begun,
 * or is about to end, and the chain has none. All others must be as they should. If
 * there are no others, nothing speaks for a chain without frames.
 */
static enum frame_source_answer place_change(struct placing *p)
{
	const struct placing start = *p;

	p->strict = true;
	if (p->chain->n > 1 && (p->chain->addresses[0] & 1)) {
		place_next(p, 0);
		if (place(p, 0) == FRAME_SOURCE_READY)
			return FRAME_SOURCE_READY;
		*p = start;
		p->strict = true;
	}
	return place(p, 1) == FRAME_SOURCE_READY ? FRAME_SOURCE_READY : FRAME_SOURCE_UNPROVEN;
}

enum frame_source_answer chain_places_find(struct chain_places *chain,
					   const struct chain_code *code,
					   const struct frame_source_sample *sample, bool still,
					   struct runtime_frames *ret)
{
	const struct placing start = {.sample = sample,
				      .code = code,
				      .rules = interp_rules(code->kind),
				      .chain = chain,
				      .still = still,
				      .seen = true};
	struct placing p = start;
	enum frame_source_answer answer = place(&p, 0);

	if (answer == FRAME_SOURCE_UNPROVEN && start.rules->changes_early) {
		p = start;
		answer = place_change(&p);
	}
	*ret = (struct runtime_frames){
		.items = chain->frames,
		.n = chain->n,
		.functions = sample->n <= CHAIN_PLACES_MAX_NATIVE ? chain->functions : NULL,
		.lacks = p.lacks ? FRAME_SOURCE_UNPROVEN : FRAME_SOURCE_NONE,
	};
	return answer;
}
